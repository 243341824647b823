import { checkAgent, checkUserSchema, checkWorkflow, type SchemaIssue } from "../../jsonschema/check.ts";
import type { Json } from "../../model/json.ts";
import { nearest } from "../../model/names.ts";
import { type MapNode, nodeAt, type SourceNode, toJson } from "../../source/document.ts";
import { anArticle, didYouMean, oneOf, type Report } from "../report.ts";
import { stepKinds } from "./kind.ts";
import { asMap, entriesOf } from "./nodes.ts";

/** Checks a whole workflow file against its schema, and every step for having exactly one kind. */
export function checkWorkflowShape(root: MapNode, report: Report): void {
  const issues = checkWorkflow(toJson(root));
  const unclear = new Set<SourceNode>();
  checkKinds(root, report, unclear);
  reportIssues(root, issues, report, unclear);
}

export function checkAgentShape(node: MapNode, report: Report): void {
  reportIssues(node, checkAgent(toJson(node)), report);
}

/** Checks a JSON Schema that a user wrote; problems are placed inside it. */
export function checkSchemaData(report: Report, node: SourceNode, schema: Json): void {
  for (const issue of checkUserSchema(schema)) {
    const found = nodeAt(node, issue.path);
    report("FLOW2011", found?.node.at ?? node.at, `this JSON Schema is not valid: ${issue.message}`);
  }
}

function checkKinds(root: MapNode, report: Report, unclear: Set<SourceNode>): void {
  const visit = (steps: SourceNode | undefined): void => {
    for (const { key, keyAt, value } of entriesOf(steps)) {
      const step = asMap(value);
      if (!step) continue;
      const kinds = step.entries.filter((it) => (stepKinds as readonly string[]).includes(it.key));
      const [first, second] = kinds;
      if (!first) {
        unclear.add(value);
        const typo = step.entries.find((it) => nearest(it.key, stepKinds) !== undefined);
        const at = typo?.keyAt ?? keyAt;
        report("FLOW2006", at, `step \`${key}\` does not say what it does: it needs one of ${oneOf(stepKinds)}`, {
          ...didYouMean(typo && nearest(typo.key, stepKinds)),
        });
      } else if (second) {
        unclear.add(value);
        report(
          "FLOW2007",
          second.keyAt,
          `step \`${key}\` is both \`${first.key}\` and \`${second.key}\`; a step is one thing`,
          {
            related: [{ message: "the first is here", at: first.keyAt }],
            suggestion: "make it two steps",
          },
        );
      }
      visit(step.entries.find((it) => it.key === "steps")?.value);
    }
  };
  visit(root.entries.find((it) => it.key === "steps")?.value);
}

/** Says what does not fit a schema, at the places of the file. */
export function reportIssues(
  root: MapNode,
  issues: readonly SchemaIssue[],
  report: Report,
  unclear: ReadonlySet<SourceNode> = new Set(),
): void {
  for (const issue of issues) {
    if (insideUnclear(root, issue.path, unclear)) continue;
    const found = nodeAt(root, issue.path);
    const at = found?.node.at ?? root.at;
    const { problem } = issue;
    switch (problem.kind) {
      case "unknown_key":
        reportUnknownKey({ issue, key: problem.key, allowed: problem.allowed, root, report });
        break;
      case "missing_key":
        if (!isMisspelt(problem.key, issue.path, issues)) report("FLOW2003", found?.keyAt ?? at, issue.message);
        break;
      case "type":
        report("FLOW2001", at, `${place(issue.path)}${issue.message}`, hintFor(issue, found?.node));
        break;
      case "name":
        // Names of steps, inputs and so on are checked where they are read, with better words.
        break;
      case "choice":
        if (problem.keys.includes("run")) break;
        report("FLOW2009", found?.keyAt ?? at, `${place(issue.path)}${issue.message}`, () => {
          const written = asMap(found?.node)?.entries.map(({ key }) => nearest(key, problem.keys)) ?? [];
          return didYouMean(written.find((name) => name !== undefined && !hasKey(found?.node, name)));
        });
        break;
      case "enum":
        report(
          "FLOW2004",
          at,
          `${place(issue.path)}${issue.message}`,
          didYouMean(nearest(problem.given, problem.allowed)),
        );
        break;
      case "value":
        report("FLOW2004", at, `${place(issue.path)}${issue.message}`);
    }
  }
}

function hasKey(node: SourceNode | undefined, name: string): boolean {
  return asMap(node)?.entries.some(({ key }) => key === name) === true;
}

/** What somebody probably meant who wrote a value of another type. */
function hintFor(issue: SchemaIssue, node: SourceNode | undefined): ReturnType<typeof didYouMean> {
  if (isStepList(issue, node)) return stepList;
  const [outer, key] = issue.path.slice(-2);
  if (outer !== "permissions" || typeof key !== "string" || node?.kind !== "list") return {};
  const near = nearest(key, ["allow", "ask", "deny"]);
  if (near !== undefined) return didYouMean(near);
  return { suggestion: `a list of rules stands under \`allow\`, \`ask\` or \`deny\`, as in \`deny: ["${key}(…)"]\`` };
}

/** A list where steps belong: every other tool for CI writes them so. */
function isStepList({ path }: SchemaIssue, node: SourceNode | undefined): boolean {
  return path.at(-1) === "steps" && node?.kind === "list";
}

const stepList = { suggestion: "give each step an id: `steps: { build: { run: make }, test: { run: make test } }`" };

/** Whether an unknown key of the same mapping is what somebody wrote for the missing one. */
function isMisspelt(missing: string, path: SchemaIssue["path"], issues: readonly SchemaIssue[]): boolean {
  return issues.some(
    ({ problem, path: other }) =>
      problem.kind === "unknown_key" &&
      other.join("/") === path.join("/") &&
      nearestKey(problem.key, [missing]) === missing,
  );
}

/** The key that was meant; a letter of another alphabet that looks alike counts as one wrong letter. */
function nearestKey(key: string, allowed: readonly string[]): string | undefined {
  return nearest(key, allowed) ?? nearest(key.normalize("NFKD").replaceAll(/[^ -~]/g, "?"), allowed);
}

function insideUnclear(root: MapNode, path: SchemaIssue["path"], unclear: ReadonlySet<SourceNode>): boolean {
  if (unclear.size === 0) return false;
  return path.some((_, end) => {
    const found = nodeAt(root, path.slice(0, end + 1));
    return found !== undefined && unclear.has(found.node);
  });
}

interface UnknownKey {
  readonly issue: SchemaIssue;
  readonly key: string;
  readonly allowed: readonly string[];
  readonly root: MapNode;
  readonly report: Report;
}

function reportUnknownKey({ issue, key, allowed, root, report }: UnknownKey): void {
  const parent = asMap(nodeAt(root, issue.path)?.node);
  const at = parent?.entries.find((it) => it.key === key)?.keyAt ?? root.at;
  const foreign = /[^\u0000-\u007f]/u.exec(key)?.[0];
  const near = nearestKey(key, allowed);
  if (foreign !== undefined) {
    report(
      "FLOW2002",
      at,
      `unknown key ${JSON.stringify(key)}: it holds the letter ${JSON.stringify(foreign)} (U+${foreign.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}), which is not ASCII`,
      { ...didYouMean(near) },
    );
    return;
  }
  const kind = parent && stepKinds.find((it) => parent.entries.some((entry) => entry.key === it));
  const belongs = kind === undefined ? undefined : keyOwners[key];
  if (belongs) report("FLOW2008", at, `\`${key}\` makes no sense on ${anArticle(kind ?? "")} step: ${belongs}`);
  else
    report(
      "FLOW2002",
      at,
      `unknown key \`${key}\``,
      near === undefined ? { suggestion: `allowed here: ${oneOf(allowed, 40)}` } : didYouMean(near),
    );
}

/** Keys that only some kinds of steps take, and why the others do not. */
const keyOwners: { readonly [key: string]: string } = {
  prompt: "only an `agent` is asked something",
  model: "only an `agent` talks to a model",
  tools: "only an `agent` calls tools by itself",
  permissions: "permissions judge what an `agent` asks for",
  check: "it checks the answer of an `agent`",
  team: "only an `agent` leads a team",
  shell: "only `run` starts a shell",
  cwd: "only `run` starts a program",
  stdin: "only `run` starts a program",
  output: "its outputs have their shape from elsewhere",
  form: "only `approve` asks a person",
};

/** `steps.build.retry: ` in front of a message. */
function place(path: SchemaIssue["path"]): string {
  return path.length === 0
    ? ""
    : `\`${path.map((part, index) => (typeof part === "number" ? `[${part}]` : index === 0 ? part : `.${part}`)).join("")}\` `;
}
