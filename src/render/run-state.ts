import type { Palette } from "./palette.ts";
import type { NodeStatus, RunTree, StepNode } from "./run-tree.ts";

/** A run as far as it is known, and whether somebody still writes to its log. */
export interface RunView {
  readonly tree: RunTree;
  /** A run that does not go on and has no end was interrupted. */
  readonly alive: boolean;
}

/** A state in one sign and one or a few words. */
export interface Word {
  readonly glyph: string;
  readonly text: string;
  readonly paint: keyof Palette;
}

/** How a step stands; what had begun and will not go on is `interrupted`. */
export function stateOf(node: StepNode, isOver: boolean): Word {
  if (!isOver || (node.status !== "running" && node.status !== "ready" && node.status !== "pending"))
    return words[node.status];
  return node.status === "running" ? words.interrupted : words["not started"];
}

type StateName = NodeStatus | "interrupted" | "not started" | "waiting" | "empty";

export const words: { readonly [state in StateName]: Word } = {
  success: { glyph: "✓", text: "ok", paint: "green" },
  failure: { glyph: "✗", text: "failed", paint: "red" },
  skipped: { glyph: "⊘", text: "skipped", paint: "dim" },
  cancelled: { glyph: "■", text: "cancelled", paint: "yellow" },
  running: { glyph: "●", text: "running", paint: "cyan" },
  ready: { glyph: "○", text: "ready", paint: "dim" },
  pending: { glyph: "○", text: "pending", paint: "dim" },
  interrupted: { glyph: "!", text: "interrupted", paint: "yellow" },
  "not started": { glyph: "○", text: "not started", paint: "dim" },
  waiting: { glyph: "◷", text: "waiting", paint: "yellow" },
  empty: { glyph: "⊘", text: "empty (no step ran)", paint: "red" },
};

export function isOver({ tree, alive }: RunView): boolean {
  return tree.end !== undefined || !alive;
}

/** How the run stands. */
export function runState({ tree, alive }: RunView): Word {
  return tree.end === undefined ? (alive ? words.running : words.interrupted) : words[tree.end.outcome];
}

/** `6 ok, 1 failed, 2 skipped`: by conclusion, a forgiven failure counts as ok. */
export function countText(view: RunView, nodes: readonly StepNode[]): string {
  const counts = new Map(Object.values(words).map(({ text }) => [text, 0]));
  for (const node of nodes) {
    const { text } = node.conclusion === "success" ? words.success : stateOf(node, isOver(view));
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const parts = [...counts].filter(([, number]) => number > 0).map(([text, number]) => `${number} ${text}`);
  return parts.join(", ") || "none";
}
