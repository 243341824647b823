import { flowFunctions } from "./flow-functions.ts";
import { githubFunctions } from "./github-functions.ts";
import { manyArguments } from "./signature.ts";
import type { Signature } from "./signature.ts";

/** Part of the evaluation itself: lazy, or asking the scope. */
const evaluated: readonly Signature[] = [
  { name: "default", min: 1, max: manyArguments, type: "branches" },
  { name: "case", min: 3, max: manyArguments, type: "branches" },
  { name: "success", min: 0, max: 0, type: "boolean" },
  { name: "failure", min: 0, max: 1, type: "boolean" },
  { name: "always", min: 0, max: 0, type: "boolean" },
  { name: "cancelled", min: 0, max: 0, type: "boolean" },
  { name: "hashFiles", min: 1, max: manyArguments, type: "string" },
];

const signatures: readonly Signature[] = [...githubFunctions, ...flowFunctions, ...evaluated];
const byName: ReadonlyMap<string, Signature> = new Map(
  signatures.map((signature) => [signature.name.toLowerCase(), signature]),
);

export const functionNames: readonly string[] = signatures.map(({ name }) => name);

export function functionNamed(name: string): Signature | undefined {
  return byName.get(name.toLowerCase());
}

const statusNames: ReadonlySet<string> = new Set(["success", "failure", "always", "cancelled"]);

/** `name` in lower case. */
export function isStatusFunction(name: string): boolean {
  return statusNames.has(name);
}
