import { spawn, spawnSync } from "node:child_process";
import { afterEach, describe, expect, test } from "vitest";
import { command, Place } from "./flow.ts";

/** Runs a command in a pseudo-terminal: waits for each text of the script, then types what follows it. */
const driver = `
import json, os, pty, select, sys, time
script, argv = json.loads(sys.argv[1]), sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(argv[0], argv)
out, at, step, end = b"", 0, 0, time.time() + 20
while time.time() < end:
    if select.select([fd], [], [], 0.05)[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        out += data
    if step < len(script):
        found = out.find(script[step][0].encode(), at)
        if found >= 0:
            at = found + len(script[step][0])
            time.sleep(0.05)
            os.write(fd, script[step][1].encode())
            step += 1
else:
    os.kill(pid, 9)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(json.dumps({"code": status, "screen": out.decode("utf-8", "replace"), "typed": step}))
`;

const hasPython = spawnSync("python3", ["-c", "import pty"]).status === 0;
if (!hasPython) console.log("skipped: no python3 with a pty module here, so nothing is typed into a terminal");

interface Session {
  readonly code: number;
  /** What the terminal was sent, without its escape codes. */
  readonly screen: string;
  /** How many lines of the script were typed. */
  readonly typed: number;
}

type Script = readonly (readonly [waitFor: string, type: string])[];

const places: Place[] = [];
function place(files: Readonly<Record<string, string>>): Place {
  const made = new Place(files);
  places.push(made);
  return made;
}
afterEach(() => {
  for (const made of places.splice(0)) made.remove();
});

function inTerminal(here: Place, args: readonly string[], script: Script): Promise<Session> {
  const argv = ["-c", driver, JSON.stringify(script), process.execPath, command, ...args];
  const { CI: _, ...env } = process.env;
  const child = spawn("python3", argv, { cwd: here.folder, env: { ...env, TERM: "xterm", USER: "mei" } });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", () => {
      const session = JSON.parse(text) as Session;
      const screen = session.screen.replaceAll(/\u001B\[[0-9;?]*[A-Za-z]/g, "").replaceAll("\r", "");
      resolve({ ...session, screen });
    });
  });
}

const form = `
name: form
steps:
  ok:
    approve: "Ship it?"
    form:
      type: object
      required: [reason, nodes]
      properties:
        reason: { type: string, minLength: 3, description: Why now }
        window: { enum: [now, tonight], default: tonight }
        nodes: { type: integer, minimum: 1 }
  beside: { run: sleep 0.4 }
  then: { needs: [ok], run: 'echo "$WHAT"', env: { WHAT: "\${{ toJSON(steps.ok.outputs) }}" } }
outputs: { said: "\${{ steps.then.outputs.stdout }}" }
`;

const two = `
name: two
steps:
  first: { approve: "One?" }
  second: { approve: "Two?" }
  clean: { needs: ["*"], if: always(), run: echo cleaned }
`;

describe.runIf(hasPython)("in a terminal an approval", () => {
  test("asks for the fields of its form, again where they do not fit, then yes or no and a comment", async () => {
    const here = place({ "form.yaml": form });
    const script: Script = [
      ["reason (text) Why now", "no\r"],
      ["reason must be at least 3 characters long", "all green\r"],
      ["window (one of now, tonight; default tonight)", "later\r"],
      ["window must be one of now, tonight", "\r"],
      ["nodes (integer)", "\r"],
      ["nodes must be a whole number", "0\r"],
      ["nodes must be at least 1", "3\r"],
      ["approve? [y/N]", "perhaps\r"],
      ["y for yes, n for no", "y\r"],
      ["comment (optional)", "go\r"],
    ];
    const { code, screen, typed } = await inTerminal(here, ["run", "form.yaml"], script);
    expect([typed, code]).toEqual([10, 0]);
    expect(screen).toContain("ok asks: Ship it?");
    const given = here.events().find(({ type }) => type === "approval.given");
    expect(given).toMatchObject({
      decision: "approved",
      comment: "go",
      form: { reason: "all green", window: "tonight", nodes: 3 },
    });
  });

  test("stands below what the run says, and keeps what was typed", async () => {
    const here = place({ "form.yaml": form });
    const script: Script = [
      ["> ", "all"],
      ["beside     ok", " green\r"],
      ["window", "\r"],
      ["nodes", "1\r"],
      ["approve?", "y\r"],
      ["comment", "\r"],
    ];
    const { code, screen } = await inTerminal(here, ["run", "form.yaml"], script);
    expect(code).toBe(0);
    expect(screen).toMatch(/\n?\d\d:\d\d\.\d beside {5}ok [\d.]+s\n {2}> all/);
    expect(here.log()).toContain('"reason":"all green"');
  });

  test("is asked after the one before it has its answer, and a plain Enter is a no", async () => {
    const here = place({ "two.yaml": two });
    const script: Script = [
      ["first asks: One?", ""],
      ["approve?", "y\r"],
      ["comment", "\r"],
      ["second asks: Two?", ""],
      ["approve?", "\r"],
      ["comment", "not now\r"],
    ];
    const { code, screen, typed } = await inTerminal(here, ["run", "two.yaml"], script);
    expect([typed, code]).toEqual([6, 1]);
    expect(screen).toContain("rejected: not now");
  });

  test("ends with Ctrl-C, and exit handlers run", async () => {
    const here = place({ "two.yaml": two });
    const { code } = await inTerminal(here, ["run", "two.yaml"], [["approve?", "\u0003"]]);
    expect(code).toBe(130);
    const ends = here
      .events()
      .flatMap((event) => (event.type === "step.finished" ? [[event.step, event.outcome]] : []));
    expect(Object.fromEntries(ends)).toEqual({ first: "cancelled", second: "cancelled", clean: "success" });
  });

  test("is left open with Ctrl-D, and so are those after it; a resume asks on", async () => {
    const here = place({ "two.yaml": two });
    const left = await inTerminal(here, ["run", "two.yaml"], [["approve?", "\u0004"]]);
    expect([left.code, left.screen]).toEqual([5, expect.stringContaining("--approve second")]);
    const script: Script = [
      ["One?", ""],
      ["approve?", "y\r"],
      ["comment", "\r"],
    ];
    const resumed = await inTerminal(here, ["resume", "latest", "--approve", "second"], script);
    expect([resumed.typed, resumed.code]).toEqual([3, 0]);
  });

  test.each([
    ["--no-input", ["run", "two.yaml", "--no-input"]],
    ["--progress json", ["run", "two.yaml", "--progress", "json"]],
  ])("is not asked with %s", async (_, args) => {
    const here = place({ "two.yaml": two });
    const { code, screen } = await inTerminal(here, args, []);
    expect([code, screen.includes("approve?")]).toEqual([5, false]);
  });

  test("is given up when its time is up", async () => {
    const here = place({ "late.yaml": "name: l\nsteps: { ok: { approve: 'Go?', timeout: 500ms } }\n" });
    const { code, screen } = await inTerminal(here, ["run", "late.yaml"], []);
    expect([code, screen]).toEqual([1, expect.stringContaining("timeout: nobody answered until")]);
  });
});

const call = "{ calls: [{ name: Bash, args: { command: echo hi } }] }";
const asks = (keys: string, rule: string): string => `
name: asks
model: scripted/r.yaml
permissions: { Bash: ${rule} }
steps:
  a: { agent: { name: x, instructions: You., tools: [Bash]${keys} }, prompt: go }
`;

describe.runIf(hasPython)("in a terminal a tool call", () => {
  test.each([
    ["`ask`", asks("", "ask")],
    ["`approval: sensitive`", asks(", approval: sensitive", "allow")],
    ["`approval: always`", asks(", approval: always", "allow")],
  ])("under %s is asked about once, and a yes holds for the rest of the run", async (_, workflow) => {
    const here = place({
      "asks.yaml": workflow,
      "r.yaml": `agents: { x: [${call}, ${call}, { text: done }] }\n`,
    });
    const script: Script = [
      ["Allow Bash(echo hi)?", ""],
      ["approve?", "y\r"],
      ["comment", "\r"],
    ];
    const { code, screen, typed } = await inTerminal(here, ["run", "asks.yaml"], script);
    expect([code, typed, screen.split("Allow Bash").length - 1]).toEqual([0, 3, 1]);
  });
});

test("`--no-input` beside `--input` takes nothing from it", async () => {
  const here = place({
    "i.yaml":
      "name: i\ninputs: { a: { type: string } }\nsteps: { s: { set: { a: '${{ inputs.a }}' } } }\noutputs: { a: '${{ steps.s.outputs.a }}' }\n",
  });
  const { code, stdout } = await here.flow(["run", "i.yaml", "--input", "a=1", "--no-input"]);
  expect([code, stdout]).toEqual([0, "a: 1\n"]);
});
