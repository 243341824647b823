import { afterEach, describe, expect, it } from "vitest";
import { run, type RunResult } from "../../src/flow.ts";
import type { Asker } from "../../src/model/ports.ts";
import { Place } from "./flow.ts";
import { of, replies } from "./lineage.ts";

const places: Place[] = [];
afterEach(() => places.splice(0).forEach((place) => place.remove()));

const write = (file: string): string => `{ calls: [{ name: Write, args: { file_path: ${file}, content: x } }] }`;

function placeWith(steps: string): Place {
  const place = new Place({
    "flow.yaml": `model: scripted/replies.yaml\nsteps:\n${steps}`,
    "replies.yaml": replies({ a: [write("a.txt"), "{ text: a }"], b: [write("b.txt"), "{ text: b }"] }),
  });
  places.push(place);
  return place;
}

const agent = (name: string, more = ""): string =>
  `  ${name}: { agent: { instructions: You., tools: [Write], prompt: hi${more} } }\n`;

/** Answers yes after a while, whatever becomes of the question; tells what it was asked, and what was withdrawn. */
function slowAsker(ms: (question: string) => number): Asker & { readonly told: string[] } {
  const told: string[] = [];
  return {
    told,
    ask: ({ question }, signal) => {
      const file = /[ab]\.txt/.exec(question)?.[0] ?? question;
      told.push(`asked ${file}`);
      const withdrawn = (): void => void told.push(`withdrawn ${file}`);
      signal.addEventListener("abort", withdrawn);
      return new Promise((resolve) => {
        setTimeout(() => {
          signal.removeEventListener("abort", withdrawn);
          resolve({ decision: "approved" });
        }, ms(file));
      });
    },
  };
}

async function asked(place: Place, asker: Asker): Promise<RunResult> {
  return run({ file: "flow.yaml", cwd: place.folder, asker, by: "me" });
}

describe("a question whether an agent may do something", () => {
  it("is withdrawn when the agent is to end, and a yes after that changes nothing", async () => {
    const place = placeWith(agent("a", ", limits: { duration: 500ms }"));
    const told: string[] = [];
    const late = Promise.withResolvers<void>();
    const asker: Asker = {
      ask: (_, signal) =>
        new Promise((resolve) => {
          told.push("asked");
          signal.addEventListener("abort", () => {
            told.push("withdrawn");
            setTimeout(() => {
              resolve({ decision: "approved" });
              late.resolve();
            }, 50);
          });
        }),
    };
    const result = await asked(place, asker);
    await late.promise;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect([result.started && result.end.exitCode, told]).toEqual([4, ["asked", "withdrawn"]]);
    expect(of(place.events(), "tool.started")).toEqual([]);
  });

  it("is not asked at all for an agent that has ended while another's was open", async () => {
    const place = placeWith(agent("a") + agent("b", ", limits: { duration: 500ms }"));
    const asker = slowAsker((file) => (file === "a.txt" ? 1500 : 0));
    const result = await asked(place, asker);
    expect([result.started && result.end.exitCode, asker.told]).toEqual([4, ["asked a.txt"]]);
    expect(of(place.events(), "tool.started").map(({ step }) => step)).toEqual(["a"]);
    const ended = of(place.events(), "agent.finished").map(({ step, outcome }) => `${step} ${outcome}`);
    expect(ended).toEqual(["b budget", "a done"]);
  });

  it("that cannot be asked is a no with the reason, and the next one is asked", async () => {
    const place = placeWith(agent("a") + agent("b"));
    let count = 0;
    const asker: Asker = {
      ask: () => {
        count++;
        if (count === 1) throw new Error("my page broke");
        return Promise.resolve({ decision: "approved" });
      },
    };
    const result = await asked(place, asker);
    expect([result.started && result.end.exitCode, count]).toEqual([0, 2]);
    const [no, yes] = of(place.events(), "permission.judged");
    expect(no).toMatchObject({ decision: "deny", rule: "a person could not be asked: my page broke" });
    expect(yes).toMatchObject({ decision: "allow" });
    expect(of(place.events(), "agent.finished")).toHaveLength(2);
  });
});
