import type { Event } from "../../src/model/event.ts";
import { noUsage } from "../../src/model/message.ts";

const ids = { step: "plan", agent: "plan-1", parent: null } as const;
const turn = { ...ids, turn: 1 } as const;
const commit = "9fceb02d0ae598e95dc970b74767f19372d61af8";
const sha = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const at = { file: "a.yaml", line: 1, column: 1, endLine: 1, endColumn: 2 };
const failure = { kind: "exit", message: "exited with 3", position: at, cause: "why", step: "a/b" } as const;

type Samples = { readonly [Type in Event["type"]]: readonly Extract<Event, { type: Type }>[] };

/** At least one event of each type; a missing one is an error of the compiler. */
export const samples: Samples = {
  "run.started": [
    {
      type: "run.started",
      log: 1,
      flow: "0.1.0",
      run: "20261121-215546-4qk3f",
      workflow: "a.yaml",
      name: "a",
      workspace: "/w",
      commit: null,
      supervision: "group",
      digest: sha,
      inputs: { a: 1 },
      plan: { blob: sha, size: 70_000 },
    },
  ],
  "run.resumed": [
    { type: "run.resumed", flow: "0.1.0", run: "20261121-215546-k3f9", workflow: "a.yaml", name: "a", digest: sha },
    {
      type: "run.resumed",
      flow: "0.1.0",
      run: "20261121-215546-k3f9",
      workflow: "a.yaml",
      name: "a",
      digest: sha,
      supervision: "namespace",
      plan: { blob: sha, size: 70_000 },
      changes: ["step a: body"],
      script: "replies.yaml",
      from: "a[1]",
      answers: [{ step: "b", decision: "approved", by: "mei", comment: "", form: { why: "now" } }],
      set: [{ step: "a[1]", output: "b", value: { c: 1 } }],
      torn: 12,
    },
  ],
  "run.waiting": [{ type: "run.waiting", steps: ["a[1]/ok", "b"] }],
  "permissions.counted": [
    {
      type: "permissions.counted",
      rules: [
        { rule: "Bash(git *)", decision: "allow", layer: "workflow", file: "a.yaml", line: 3, hits: 2 },
        { rule: "Write", decision: "allow", layer: "command line", hits: 0 },
      ],
    },
  ],
  "run.finished": [
    {
      type: "run.finished",
      outcome: "failure",
      outputs: {},
      error: failure,
      usage: { ...noUsage, cost: null },
      duration: 1.5,
      exitCode: 1,
    },
  ],
  "step.ready": [{ type: "step.ready", step: "group[2]/ok#3" }],
  "step.started": [{ type: "step.started", step: "a", kind: "run" }],
  "step.attempt.started": [
    { type: "step.attempt.started", step: "a", attempt: 1 },
    {
      type: "step.attempt.started",
      step: "a",
      attempt: 1,
      fingerprint: { definition: sha.slice(0, 16), given: sha.slice(0, 16) },
      again: "uncertain",
    },
    { type: "step.attempt.started", step: "a", attempt: 1, again: "waiting" },
  ],
  "step.retrying": [{ type: "step.retrying", step: "a", attempt: 2, delay: 1500, error: failure }],
  "step.reused": [{ type: "step.reused", step: "a", end: 17 }],
  "step.cached": [
    {
      type: "step.cached",
      step: "a[1]",
      key: sha,
      run: "20261121-215546-4qk3f",
      stored: "2026-11-21T21:55:46.000Z",
    },
  ],
  "step.uncached": [
    { type: "step.uncached", step: "a", key: sha, why: "first" },
    {
      type: "step.uncached",
      step: "a",
      key: sha,
      why: "changed",
      changed: ["file src/a.ts", "env.X (new)"],
      than: { run: "20261121-215546-4qk3f", stored: "2026-11-21T21:55:46.000Z" },
    },
  ],
  "step.undo.started": [{ type: "step.undo.started", step: "a[1]" }],
  "step.undone": [
    { type: "step.undone", step: "a[1]", outcome: "success", duration: 2 },
    { type: "step.undone", step: "a[1]", outcome: "failure", error: failure, duration: 2 },
  ],
  "step.attempt.finished": [
    { type: "step.attempt.finished", step: "a", attempt: 1, outcome: "success", outputs: { b: 1 }, duration: 2 },
    { type: "step.attempt.finished", step: "a", attempt: 1, outcome: "success", result: { b: 1 }, duration: 2 },
    { type: "step.attempt.finished", step: "a", attempt: 1, outcome: "failure", error: failure, duration: 2 },
  ],
  "step.skipped": [
    {
      type: "step.skipped",
      step: "a",
      reason: { kind: "condition", condition: "inputs.x", saw: [{ expression: "inputs.x" }] },
    },
    { type: "step.skipped", step: "a", reason: { kind: "needs", step: "b", outcome: "failure", message: "b failed" } },
    {
      type: "step.skipped",
      step: "a",
      reason: { kind: "edge", step: "b", condition: "x", saw: [{ expression: "x", value: [1] }] },
    },
    { type: "step.skipped", step: "a", reason: { kind: "empty" } },
    { type: "step.skipped", step: "a", reason: { kind: "cancelled" } },
  ],
  "step.finished": [
    { type: "step.finished", step: "a", outcome: "success", conclusion: "success", duration: 2 },
    {
      type: "step.finished",
      step: "a",
      outcome: "failure",
      conclusion: "success",
      outputs: { a: [null, true] },
      error: failure,
      duration: 2,
    },
  ],
  "approval.requested": [
    { type: "approval.requested", step: "a[1]/ok", question: "Ship?" },
    {
      type: "approval.requested",
      step: "b",
      question: "Ship?",
      form: { type: "object", properties: { why: { type: "string" } } },
      deadline: "2026-11-23T21:55:46.001Z",
    },
  ],
  "approval.given": [
    { type: "approval.given", step: "b", decision: "approved", by: "mei", comment: "", form: { why: "now" } },
    { type: "approval.given", step: "b", decision: "denied", by: "mei", comment: "not yet", form: {} },
  ],
  "mcp.started": [{ type: "mcp.started", step: "a", server: "files", offers: 2, pinned: false, duration: 3 }],
  "mcp.warning": [{ type: "mcp.warning", step: "a", server: "files", note: "it is gone" }],
  "worktree.opened": [
    { type: "worktree.opened", step: "a[1]", worktree: "a-1-1", folder: "/w/a-1-1", base: commit, duration: 34 },
    {
      type: "worktree.opened",
      step: "a",
      agentRun: "a@1/2",
      into: "lead-1",
      worktree: "a-1",
      folder: "/w/a-1",
      base: commit,
      restored: true,
      duration: 34,
    },
  ],
  "worktree.applying": [
    { type: "worktree.applying", step: "a", worktree: "a-1", patch: "/w/a-1.patch", from: commit, to: commit },
    {
      type: "worktree.applying",
      step: "a",
      worktree: "a-1",
      patch: "/w/a-1.patch",
      from: commit,
      to: commit,
      result: { text: "done" },
      outputs: { text: "done" },
    },
  ],
  "worktree.closed": [
    { type: "worktree.closed", step: "a", worktree: "a-1", status: "empty", files: [], duration: 12 },
    {
      type: "worktree.closed",
      step: "a",
      worktree: "a-1",
      status: "conflict",
      patch: "/w/a-1.patch",
      files: ["a.ts", "b.ts"],
      left: commit,
      conflicts: ["b.ts"],
      why: "both have changed it",
      duration: 12,
    },
  ],
  "worktree.removed": [
    { type: "worktree.removed", run: "20261121-215546-4qk3f", worktree: "a-1" },
    { type: "worktree.removed", run: "20261121-215546-4qk3f", worktree: "a-1", patch: "/w/a-1.patch" },
  ],
  "agent.started": [
    { type: "agent.started", ...ids, name: "planner", model: "scripted/a", provider: "scripted", tools: ["Read"] },
    {
      type: "agent.started",
      ...ids,
      name: "planner",
      model: "m",
      provider: "p",
      tools: [],
      sandbox: "unavailable",
      continues: "plan@1",
    },
  ],
  "agent.finished": [
    {
      type: "agent.finished",
      ...ids,
      outcome: "done",
      reason: "",
      turns: 2,
      usage: noUsage,
      text: "Done.",
      output: 7,
      duration: 3,
    },
  ],
  "turn.started": [{ type: "turn.started", ...turn, model: "m", provider: "p", request: sha }],
  message: [
    {
      type: "message",
      ...turn,
      message: { role: "assistant", blocks: [{ type: "text", text: "a" }] },
      stop: "end",
      usage: noUsage,
    },
    {
      type: "message",
      ...turn,
      message: {
        role: "assistant",
        blocks: [
          { type: "text", text: "a" },
          { type: "thinking", text: "b", signature: "c", field: "d" },
          { type: "call", id: "1", name: "Read", args: { a: 1 }, raw: "{}" },
          { type: "result", id: "1", blocks: [{ type: "text", text: "a" }], error: true },
        ],
      },
    },
  ],
  "context.compressed": [
    {
      type: "context.compressed",
      ...turn,
      how: "trimmed",
      tokens: { before: 900, after: 300, limit: 1000 },
      upTo: 20,
    },
    {
      type: "context.compressed",
      ...turn,
      how: "summarised",
      tokens: { before: 900, after: 300, limit: null },
      from: 2,
      to: 20,
      message: { role: "user", blocks: [{ type: "text", text: "a" }] },
      request: sha,
      usage: noUsage,
    },
  ],
  guard: [
    { type: "guard", ...turn, rule: "reads", action: "hint", text: "a" },
    { type: "guard", ...turn, rule: "repeats", action: "refuse", text: "a", call: "1", subject: "9f86d081884c7d65" },
  ],
  "hook.finished": [
    {
      type: "hook.finished",
      step: "a",
      agentRun: "a@1",
      event: "PreToolUse",
      command: "./guard.sh",
      from: "project flow.config.yaml:1",
      status: "blocked",
      text: "no",
      duration: 3,
    },
  ],
  "check.started": [{ type: "check.started", ...turn, count: 1 }],
  "check.finished": [{ type: "check.finished", ...turn, count: 1, status: "failed", text: "a", duration: 3 }],
  "message.delta": [
    { type: "message.delta", ...turn, delta: { type: "text", text: "a" } },
    { type: "message.delta", ...turn, delta: { type: "thinking", text: "a" } },
    { type: "message.delta", ...turn, delta: { type: "call.started", id: "1", name: "Read" } },
    { type: "message.delta", ...turn, delta: { type: "call.args", id: "1", text: "{" } },
  ],
  "model.retry": [
    {
      type: "model.retry",
      ...turn,
      model: "openai/m",
      provider: "openai",
      attempt: 2,
      delay: 3_000,
      error: { kind: "rate_limit", message: "slow down" },
    },
    {
      type: "model.retry",
      ...turn,
      model: "openai/m",
      provider: "openai",
      attempt: 3,
      delay: 1_500,
      error: { kind: "provider_error", message: "cut off" },
      usage: { ...noUsage, output: 7, estimated: true, cost: null },
    },
  ],
  "model.failed": [
    {
      type: "model.failed",
      ...turn,
      model: "openai/m",
      provider: "openai",
      attempt: 4,
      error: { kind: "unavailable", message: "nobody answers" },
    },
  ],
  "model.fallback": [
    {
      type: "model.fallback",
      ...turn,
      from: "openai/m",
      model: "anthropic/m",
      provider: "anthropic",
      request: "e".repeat(64),
    },
  ],
  "model.warning": [{ type: "model.warning", ...turn, model: "openai/m", note: "an odd end" }],
  "turn.finished": [{ type: "turn.finished", ...turn, stop: "calls", usage: noUsage, duration: 4 }],
  "budget.reserved": [
    { type: "budget.reserved", ...turn, tokens: 9012, cost: 0.09 },
    { type: "budget.reserved", ...turn, tokens: 9012, cost: null },
  ],
  "budget.settled": [{ type: "budget.settled", ...turn, tokens: 932, cost: 0.004, estimated: false }],
  "budget.exceeded": [
    { type: "budget.exceeded", ...turn, limit: "cost", of: "the run", most: 0.1, spent: 0.09, worst: 0.03 },
    { type: "budget.exceeded", ...turn, limit: "cost", of: "step `a`", most: 0.1, spent: null, worst: null },
  ],
  "permission.judged": [
    {
      type: "permission.judged",
      ...turn,
      id: "1",
      name: "Read",
      decision: "allow",
      rule: "Read(./)",
      layer: "default",
    },
    {
      type: "permission.judged",
      ...turn,
      id: "1",
      name: "Bash",
      decision: "ask",
      rule: "Bash",
      layer: "workflow",
      file: "a.yaml",
      line: 3,
      toAllow: ["Bash(git push)"],
    },
  ],
  "tool.started": [{ type: "tool.started", ...turn, id: "1", name: "Read", args: { file_path: "a" } }],
  "tool.finished": [
    {
      type: "tool.finished",
      ...turn,
      id: "1",
      name: "Read",
      status: "completed",
      text: "a",
      file: "files/1.txt",
      duration: 1,
    },
  ],
  "team.started": [
    { type: "team.started", step: "lead", agent: "lead@1", parent: null, name: "crew", description: "", parallel: 2 },
  ],
  "team.member.added": [
    {
      type: "team.member.added",
      step: "lead",
      agent: "lead@1",
      parent: null,
      member: { name: "a", agent: "explore", mode: "read", paths: ["docs"], plan: true, isolation: "worktree" },
    },
  ],
  "team.member.updated": [
    {
      type: "team.member.updated",
      step: "lead",
      agent: "lead@1",
      parent: null,
      member: "a",
      change: { state: "working", task: null, agentRun: "lead@1.1", worktree: null, approved: true },
    },
  ],
  "team.member.removed": [
    { type: "team.member.removed", step: "lead", agent: "lead@1", parent: null, member: "a", reason: "gone" },
  ],
  "team.task.added": [
    {
      type: "team.task.added",
      step: "lead",
      agent: "lead@1",
      parent: null,
      task: { id: "1", subject: "s", description: "d", status: "pending", dependsOn: [] },
    },
  ],
  "team.task.updated": [
    {
      type: "team.task.updated",
      step: "lead",
      agent: "lead@1",
      parent: null,
      task: "1",
      by: "a",
      change: { status: "completed", owner: null, report: "done", dependsOn: ["2"] },
    },
  ],
  "team.message": [
    {
      type: "team.message",
      step: "lead",
      agent: "lead@1",
      parent: null,
      message: { id: "message:lead:1", from: "lead", to: "a", kind: "plan_response", content: "c", approve: false },
    },
  ],
  "team.woken": [{ type: "team.woken", step: "lead", agent: "lead@1", parent: null, count: 1 }],
  "team.finished": [
    { type: "team.finished", step: "lead", agent: "lead@1", parent: null, end: "done", reason: "the lead has ended" },
  ],
  diagnostic: [
    {
      type: "diagnostic",
      diagnostic: {
        code: "FLOW1001",
        severity: "error",
        message: "m",
        at,
        related: [{ message: "r", at }],
        suggestion: "s",
        fix: [{ at, text: "t" }],
      },
    },
  ],
};

export const allSamples: readonly Event[] = Object.values(samples).flat();
