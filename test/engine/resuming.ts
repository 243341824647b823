import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { resume, run, type ResumeRequest, type ResumeResult, type RunRequest } from "../../src/flow.ts";
import type { LogLine } from "../../src/model/event.ts";
import type { JsonObject } from "../../src/model/json.ts";

/** Thirteen steps of every kind that leaves something: each command adds its path to `count`, so that a second run shows. */
export const twelve: { readonly [file: string]: string } = {
  "twelve.yaml": `
name: twelve
inputs: { who: { type: string, default: world } }
model: scripted/replies.yaml
steps:
  start: { run: 'echo "$FLOW_STEP" >> count; echo "hello $WHO"', env: { WHO: "\${{ inputs.who }}" } }
  plan: { agent: { instructions: Plan., tools: [Glob] }, prompt: "Plan for \${{ steps.start.outputs.stdout }}" }
  flaky:
    run: 'echo "$FLOW_STEP" >> count; [ -e tried ] || { touch tried; exit 3; }; echo fine'
    retry: { max: 2, backoff: 1ms }
  sub: { workflow: ./sub.yaml, with: { text: "\${{ steps.start.outputs.stdout }}" } }
  each:
    foreach: [x, y, z]
    run: 'echo "$FLOW_STEP" >> count; echo "item=$I" >> "$FLOW_OUTPUT"'
    env: { I: "\${{ item }}" }
  loop:
    run: 'echo "$FLOW_STEP" >> count; echo "$N$LAST"'
    env: { N: "\${{ iteration }}", LAST: "\${{ default(previous.stdout, '') }}" }
    repeat: { until: "length(result.stdout) >= 3", max: 5 }
  group:
    needs: [plan]
    steps:
      inner: { run: 'echo "$FLOW_STEP" >> count; echo inner' }
      sum: { set: { all: "\${{ steps.inner.outputs.stdout }} of \${{ steps.start.outputs.stdout }}" } }
    outputs: { all: "\${{ steps.sum.outputs.all }}" }
  mapped:
    run: 'echo "$FLOW_STEP" >> count; echo raw'
    outputs: { shout: "\${{ upper(result.stdout) }} \${{ inputs.who }}" }
  tolerated: { run: 'echo "$FLOW_STEP" >> count; echo partial; exit 4', continue-on-error: true }
  undoable: { run: 'echo "$FLOW_STEP" >> count; echo made', undo: { run: 'echo "undo $FLOW_STEP" >> count' } }
  ok:
    approve: "Go on with \${{ steps.start.outputs.stdout }}?"
    form: { type: object, required: [why], properties: { why: { type: string }, often: { type: integer, default: 2 } } }
    timeout: 1d
  skipped: { if: "inputs.who == 'nobody'", run: 'echo "$FLOW_STEP" >> count' }
  report:
    agent: { instructions: Report., tools: [] }
    prompt: "\${{ steps.plan.outputs.text }} \${{ steps.group.outputs.all }}"
    output: { type: object, required: [verdict], properties: { verdict: { type: string } } }
outputs:
  plan: \${{ steps.plan.outputs.text }}
  verdict: \${{ steps.report.outputs.verdict }}
  sub: \${{ steps.sub.outputs.loud }}
  items: \${{ steps.each.outputs.items.*.item }}
  loop: \${{ steps.loop.outputs.stdout }}
  mapped: \${{ steps.mapped.outputs.shout }}
  tolerated: \${{ steps.tolerated.error.kind }} \${{ steps.tolerated.outputs.stdout }}
  approved: \${{ toJSON(steps.ok.outputs) }}
  all: \${{ steps.group.outputs.all }} \${{ steps.undoable.outputs.stdout }} \${{ steps.flaky.outputs.stdout }}
`,
  "sub.yaml": `
name: sub
inputs: { text: { type: string } }
steps:
  loud: { run: 'echo "$FLOW_STEP" >> count; echo "$T" | tr a-z A-Z', env: { T: "\${{ inputs.text }}" } }
outputs: { loud: "\${{ steps.loud.outputs.stdout }}" }
`,
  "replies.yaml": `
steps:
  plan:
    - { text: "I look around.", calls: [{ name: Glob, args: { pattern: "*.yaml" } }, { name: Glob, args: { pattern: "nothing*" } }] }
    - { text: "Once more.", calls: [{ name: Glob, args: { pattern: "sub.*" } }] }
    - { text: "Three things." }
  report:
    - { calls: [{ name: finish, args: { verdict: 7 } }] }
    - { calls: [{ name: finish, args: { verdict: ship } }] }
`,
};

/** A workspace in a folder of its own. */
export class Project {
  readonly folder: string = mkdtempSync(path.join(tmpdir(), "flow-resume-"));

  constructor(files: { readonly [file: string]: string } = {}) {
    mkdirSync(path.join(this.folder, ".git"));
    for (const [name, text] of Object.entries(files)) this.write(name, text);
  }

  write(name: string, text: string): void {
    const file = path.join(this.folder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  read(name: string): string {
    const file = path.join(this.folder, name);
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  }

  /** Runs a workflow to its end; its last outcome and outputs. */
  async run(file: string, request: Partial<RunRequest> = {}): Promise<Outcome> {
    return outcomeOf(await run({ file, cwd: this.folder, env: environment, ...request }));
  }

  async resume(request: Partial<ResumeRequest> = {}): Promise<Outcome> {
    return outcomeOf(await resume({ run: "latest", cwd: this.folder, env: environment, ...request }));
  }

  get runFolder(): string {
    const runs = path.join(this.folder, ".flow/runs");
    return path.join(runs, readdirSync(runs).sort().at(-1) ?? "no run");
  }

  get logFile(): string {
    return path.join(this.runFolder, "log.jsonl");
  }

  get log(): string {
    return readFileSync(this.logFile, "utf8");
  }

  get events(): LogLine[] {
    return readEvents(this.log);
  }

  /** Lines of `count`: what has run, in order. */
  get count(): string[] {
    return this.read("count").split("\n").filter(Boolean);
  }

  /**
   * The same workspace with the log as it was when `bytes` of it were written, under a run id of its own: what a resume
   * ends is everything that carries its id.
   */
  cutAt(bytes: number): Project {
    const copy = new Project();
    cpSync(this.folder, copy.folder, { recursive: true });
    const id = path.basename(this.runFolder);
    const own = id.slice(0, -4) + Math.random().toString(36).slice(2, 6).padEnd(4, "x");
    const log = readFileSync(this.logFile).subarray(0, bytes).toString("latin1");
    writeFileSync(copy.logFile, log.replaceAll(id, own), "latin1");
    renameSync(copy.runFolder, path.join(path.dirname(copy.runFolder), own));
    return copy;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface Outcome {
  readonly outcome: string;
  readonly outputs?: JsonObject;
  readonly message?: string;
  readonly exitCode: number;
}

const environment: { readonly [name: string]: string } = { PATH: process.env["PATH"] ?? "" };

function outcomeOf(result: ResumeResult): Outcome {
  if ("finished" in result) return { outcome: "nothing to do", outputs: result.finished.outputs, exitCode: 0 };
  if (result.started) {
    const { outcome, outputs, exitCode, error } = result.end;
    return { outcome, outputs, exitCode, ...(error && { message: `${error.kind}: ${error.message}` }) };
  }
  const { refusal } = result;
  const message = refusal.kind === "invalid" ? refusal.diagnostics.map((it) => it.message).join("\n") : refusal.message;
  return { outcome: refusal.kind, message, exitCode: refusal.exitCode };
}

export function readEvents(text: string): LogLine[] {
  return text
    .split("\n")
    .slice(0, -1)
    .filter(Boolean)
    .map((line) => JSON.parse(line) as LogLine);
}

/** What each execution was told at a resume: `a reused`, `b again failed`, `c began`; of the last resume in the log. */
export function decisions(events: readonly LogLine[]): string[] {
  const last = events.findLastIndex(({ type }) => type === "run.resumed");
  return events.slice(last + 1).flatMap((event) => {
    if (event.type === "step.reused") return [`${event.step} reused`];
    if (event.type !== "step.attempt.started" || event.attempt > 1 || event.fingerprint === undefined) return [];
    return [event.again === undefined ? `${event.step} began` : `${event.step} again ${event.again}`];
  });
}

/** Paths whose last attempt in these events succeeded, or was forgiven: what must not run a second time. */
export function ended(events: readonly LogLine[]): ReadonlySet<string> {
  const paths = new Set<string>();
  for (const event of events) {
    if (event.type === "step.attempt.finished" && event.outcome === "success") paths.add(event.step);
    if (event.type === "step.finished" && event.outcome === "failure" && event.conclusion === "success")
      paths.add(event.step);
  }
  return paths;
}

/** Replies of models by step and turn. */
export function replies(events: readonly LogLine[]): string[] {
  return events.flatMap((event) =>
    event.type === "message" && event.usage ? [`${event.step} turn ${event.turn}`] : [],
  );
}
