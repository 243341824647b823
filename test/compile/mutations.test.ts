import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { checkText } from "./checking.ts";

const folder = fileURLToPath(new URL("./ok", import.meta.url));
const seeds = readdirSync(folder)
  .filter((name) => name.endsWith(".yaml"))
  .map((name) => readFileSync(join(folder, name), "utf8"));
const runs = process.env["FLOW_TORTURE"] === undefined ? 5_000 : 100_000;

const splinters = [
  ..."{}[]:,#&*!|>'\"%@`?-\\ \t\n\r\0\u2028\ufeff0é𝄞".split(""),
  ..."${{ }} ${{ }}}} steps: needs: - <<: &a *a !!js/function '' \"\" __proto__ constructor toString null true 1e400 0x1F -1 ~".split(
    " ",
  ),
  ..."failure('a') always() default( steps.a.outputs.x item.x previous toJSON(steps) hashFiles('*') steps[0] inputs.*".split(
    " ",
  ),
  "  a: { run: x }\n",
  "steps:\n  a: { set: { v: 1 } }\n",
  "repeat: { until: true, max: 1 }\n",
  "foreach: ${{ item }}\n",
];

type Random = (below: number) => number;

/** A small generator of numbers, so that a seed that found something finds it again. */
function randomOf(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    const mixed = Math.imul(state ^ (state >>> 12), 0x297a2d39);
    return ((mixed ^ (mixed >>> 15)) >>> 0) % below;
  };
}

/** A few blind changes: cut, doubled, moved, swapped and foreign pieces, of characters, words or lines. */
function mutate(seed: number): string {
  const random = randomOf(seed);
  const lines = (seeds[random(seeds.length)] ?? "").split("\n");
  // A part of a file is as good as the whole, and four times as fast.
  const from = random(lines.length);
  let text = random(3) === 0 ? lines.join("\n") : `steps:\n${lines.slice(from, from + 1 + random(14)).join("\n")}\n`;
  for (let change = random(4); change >= 0; change--) {
    const at = random(text.length + 1);
    const end = Math.min(text.length, at + random(random(3) === 0 ? 80 : 4));
    const piece = text.slice(at, end);
    const to = random(text.length + 1);
    switch (random(6)) {
      case 0:
        text = text.slice(0, at) + text.slice(end);
        break;
      case 1:
        text = text.slice(0, at) + piece.repeat(1 + random(3)) + text.slice(at);
        break;
      case 2:
        text = text.slice(0, to) + piece + text.slice(to);
        break;
      case 3:
        text =
          text.slice(0, at) + String.fromCharCode(random(3) === 0 ? random(0xffff) : 32 + random(95)) + text.slice(end);
        break;
      case 4:
        text = text
          .split("\n")
          .toSorted(() => random(3) - 1)
          .join("\n");
        break;
      default:
        text = text.slice(0, at) + (splinters[random(splinters.length)] ?? "") + text.slice(end);
    }
  }
  return text;
}

test(
  `${runs} broken workflows are each a plan or an error with a place, without a crash or a hang`,
  async () => {
    const inherited = Reflect.ownKeys(Object.prototype);
    let plans = 0;
    for (let seed = 1; seed <= runs; seed++) {
      const text = mutate(seed);
      const started = performance.now();
      const { plan, diagnostics } = await checkText(text).catch((thrown: unknown) => {
        throw new Error(`seed ${seed} crashes:\n${text}`, { cause: thrown });
      });
      const errors = diagnostics.filter((it) => it.severity === "error");
      if (plan) plans++;
      if ((plan === undefined) !== errors.length > 0)
        throw new Error(`seed ${seed} has ${errors.length} errors and ${plan ? "a" : "no"} plan:\n${text}`);
      for (const { at } of diagnostics)
        if (!(at.line >= 1 && at.column >= 1)) throw new Error(`seed ${seed} has an error without a place:\n${text}`);
      if (performance.now() - started > 5_000)
        throw new Error(`seed ${seed} takes ${performance.now() - started} ms:\n${text}`);
    }
    expect(Reflect.ownKeys(Object.prototype)).toEqual(inherited);
    // Mutations that break everything would show nothing about the later stages.
    expect(plans).toBeGreaterThan(runs / 100);
  },
  runs * 60,
);
