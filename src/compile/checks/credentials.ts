import { locate, type SourceDocument, type SourceNode } from "../../source/document.ts";
import type { Report } from "../report.ts";
import type { Check } from "./check.ts";

/** Shapes that only credentials have; each needs enough random letters that an example in a prompt does not match. */
const shapes: readonly (readonly [what: string, pattern: RegExp])[] = [
  ["an Anthropic key", /\bsk-ant-[A-Za-z0-9_-]{20,}/g],
  ["an OpenAI key", /\bsk-(?:proj-)?[A-Za-z0-9_-]{32,}/g],
  ["a GitHub token", /\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{40,}/g],
  ["a GitLab token", /\bglpat-[A-Za-z0-9_-]{20,}/g],
  ["an AWS access key", /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g],
  ["a Google API key", /\bAIza[A-Za-z0-9_-]{35}/g],
  ["a Slack token", /\bxox[abprs]-[A-Za-z0-9-]{20,}/g],
  ["an npm token", /\bnpm_[A-Za-z0-9]{36}/g],
  ["a private key", /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[A-Za-z0-9+/=\s]*/g],
  ["a URL with a password", /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@${}]{1,200}:[^\s/:@${}]{3,200}@/gi],
];

/** A credential in a file under version control is already public. It is named, and never shown. */
export const checkCredentials: Check = ({ workflow, report }) => {
  const { document } = workflow.shape.file;
  visit(document, document.root, report);
};

export function visit(document: SourceDocument, node: SourceNode, report: Report): void {
  if (node.kind === "list") node.items.forEach((item) => visit(document, item, report));
  if (node.kind === "map") node.entries.forEach((it) => visit(document, it.value, report));
  if (node.kind !== "scalar" || typeof node.value !== "string") return;
  let told = 0;
  for (const { what, at, length } of credentialsIn(node.value)) {
    if (at < told) continue;
    told = at + length;
    report(
      "FLOW8004",
      locate(document, node, at, length),
      `this looks like ${what}; a credential in a file is known to everybody who can read it`,
      {
        confidential: true,
        suggestion: "withdraw it, name an environment variable in `secrets:` and read `secrets.NAME` in `env`",
      },
    );
  }
}

/** What some shape begins with: one quick look spares nearly every text the whole list. */
const hint = /sk-|gh[pousr]_|github_pat_|glpat-|AKIA|ASIA|AIza|xox|npm_|-----BEGIN|:\/\//;

/** In the order of the text; where two shapes fit, the one that stands first in the list comes first. */
function credentialsIn(text: string): { readonly what: string; readonly at: number; readonly length: number }[] {
  if (!hint.test(text)) return [];
  const found = shapes.flatMap(([what, pattern]) =>
    [...text.matchAll(pattern)].map((match) => ({ what, at: match.index, length: match[0].trimEnd().length })),
  );
  return found.sort((a, b) => a.at - b.at);
}
