import { locate, type SourceDocument, type SourceNode } from "../../source/document.ts";
import type { Report } from "../report.ts";
import type { Check } from "./check.ts";

/** Shapes that only credentials have; each needs enough random letters that an example in a prompt does not match. */
const shapes: readonly (readonly [what: string, pattern: RegExp])[] = [
  ["an Anthropic key", /\bsk-ant-[A-Za-z0-9_-]{20,}/],
  ["an OpenAI key", /\bsk-(?:proj-)?[A-Za-z0-9_-]{32,}/],
  ["a GitHub token", /\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{40,}/],
  ["a GitLab token", /\bglpat-[A-Za-z0-9_-]{20,}/],
  ["an AWS access key", /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/],
  ["a Google API key", /\bAIza[A-Za-z0-9_-]{35}/],
  ["a Slack token", /\bxox[abprs]-[A-Za-z0-9-]{20,}/],
  ["an npm token", /\bnpm_[A-Za-z0-9]{36}/],
  ["a private key", /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/],
  ["a URL with a password", /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@${}]{1,200}:[^\s/:@${}]{3,200}@/i],
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
  for (const [what, pattern] of shapes) {
    const match = pattern.exec(node.value);
    if (!match) continue;
    report(
      "FLOW8004",
      locate(document, node, match.index, match[0].length),
      `this looks like ${what}; a credential in a file is known to everybody who can read it`,
      {
        confidential: true,
        suggestion: "withdraw it, name an environment variable in `secrets:` and read `secrets.NAME` in `env`",
      },
    );
    return;
  }
}
