import type * as Parser from "unbash";
import type { Assignment, Redirection, SyntaxNode, Word } from "unbash";
import { err, messageOf, ok, type Result } from "../model/result.ts";
import { type Forms, formsOf, union } from "./globs.ts";
import { readWord, type ShellWord } from "./shell-word.ts";

/** What a script does, as far as rules can speak of it. */
export type Deed =
  | { readonly type: "command"; readonly words: readonly ShellWord[] }
  /** Something beside plain commands, which only a rule for every command permits. */
  | { readonly type: "construct"; readonly what: string }
  /** A redirection; without a path when it is known only at run time. */
  | { readonly type: "write" | "read"; readonly path?: string };

/** Characters of a script that is still looked at, and things it may do. */
const longest = 64 * 1024;
const most = 500;

/** The parser, handed in so that only runs that judge a command load it. */
export type Unbash = Pick<typeof Parser, "parse" | "forEachChild">;

/** Everything a bash script would do, nested substitutions and all. The error says why it cannot be told. */
export function readScript(text: string, { parse, forEachChild }: Unbash): Result<readonly Deed[], string> {
  if (text.length > longest) return err(`the command is longer than ${longest} characters`);
  if (text.includes("\0")) return err("the command contains a NUL character");
  const reader = new Reader(forEachChild);
  try {
    const script = parse(text);
    reader.learn(script);
    reader.visit(script);
  } catch (error) {
    return err(`the command cannot be parsed: ${messageOf(error)}`);
  }
  return reader.finish();
}

class Reader {
  readonly #forEachChild: Unbash["forEachChild"];
  readonly #deeds: Deed[] = [];
  /** What loops give to their variables, wherever in the script. */
  readonly #variables = new Map<string, Forms>();
  #problem: string | undefined;
  /** Whether the folder that redirections are relative to may have changed. */
  #moved = false;

  constructor(forEachChild: Unbash["forEachChild"]) {
    this.#forEachChild = forEachChild;
  }

  finish(): Result<readonly Deed[], string> {
    if (this.#problem !== undefined) return err(`the command cannot be parsed: ${this.#problem}`);
    if (this.#deeds.length > most) return err(`the command does more than ${most} things`);
    if (this.#deeds.length === 0) return ok([{ type: "construct", what: "an empty command" }]);
    return ok(
      this.#deeds.map((deed) => {
        const isRelative = (deed.type === "write" || deed.type === "read") && !/^[/~]/.test(deed.path ?? "");
        return isRelative && this.#moved ? { type: deed.type } : deed;
      }),
    );
  }

  /** Before anything is judged: a loop around a command may come to it again. */
  learn(node: SyntaxNode): void {
    if (node.type === "For" && node.wordlist !== undefined) {
      const { text: name } = node.name;
      const taken = node.wordlist.map((word) => formsOf(word, this.#variables));
      const before = this.#variables.has(name) ? [this.#variables.get(name)] : [];
      this.#variables.set(name, union([...before, ...taken]));
    }
    this.#forEachChild(node, (child) => this.learn(child));
  }

  visit(node: SyntaxNode): void {
    if (node.type === "Script" && node.errors !== undefined && node.errors.length > 0)
      this.#problem ??= node.errors[0]?.message ?? "it is not valid";
    const beside = constructOf(node);
    if (beside !== undefined) this.#deeds.push({ type: "construct", what: beside });
    if (node.type === "Command") this.#command(node.name, node.args, node.prefix);
    if (node.type === "Redirect" || node.type === "HereDoc" || node.type === "HereString") this.#redirect(node);
    this.#forEachChild(node, (child) => this.visit(child));
  }

  #command(
    name: Word | undefined,
    args: readonly (Word | Assignment)[],
    prefix: readonly (Assignment | Redirection)[],
  ): void {
    const assigned = prefix.filter((it): it is Assignment => it.type === "Assignment");
    if (name === undefined) {
      if (assigned.length > 0) this.#deeds.push({ type: "construct", what: "an assignment" });
      return;
    }
    const words = [...assigned, name, ...args].map((word) => readWord(word, this.#variables));
    const program = words[assigned.length]?.text;
    if (program === undefined || movers.has(program)) this.#moved = true;
    this.#deeds.push({ type: "command", words });
  }

  #redirect(node: Exclude<Redirection, never>): void {
    if (node.descriptor?.type === "FileDescriptorVariable")
      this.#deeds.push({ type: "construct", what: "a redirection into a variable" });
    if (node.type === "HereDoc" && node.closing === undefined) this.#problem ??= "a here-document has no end";
    if (node.type !== "Redirect") return;
    const target = node.target && readWord(node.target, this.#variables).text;
    const { operator } = node;
    const isCopy = operator === ">&" || operator === "<&";
    if (isCopy && target !== undefined && /^(?:\d+-?|-)$/.test(target)) return;
    if (target !== undefined && /^\/dev\/(?:null|stdin|stdout|stderr|fd\/\d+)$/.test(target)) return;
    if (target === undefined ? operator === "<&" : /^\/dev\/(?:tcp|udp)\//.test(target)) {
      this.#deeds.push({ type: "construct", what: "a redirection to the network" });
      return;
    }
    const path = target === undefined ? {} : { path: target };
    if (operator !== ">" && operator !== ">>" && operator !== ">|" && operator !== "&>" && operator !== "&>>")
      this.#deeds.push({ type: "read", ...path });
    if (operator !== "<" && operator !== "<&") this.#deeds.push({ type: "write", ...path });
  }
}

const movers = new Set(["cd", "pushd", "popd", "eval", "source", ".", "exec", "builtin", "command"]);

/** Nodes that do nothing beside what the commands and redirections in them do. */
const plain = new Set<SyntaxNode["type"]>([
  "Script",
  "Statement",
  "CompoundList",
  "Pipeline",
  "AndOr",
  "Negation",
  "Time",
  "Command",
  "Word",
  "If",
  "Elif",
  "While",
  "Subshell",
  "BraceGroup",
  "Redirected",
  "Case",
  "CaseItem",
  "Redirect",
  "HereDoc",
  "HereDocDelimiter",
  "HereDocBody",
  "HereString",
  "FileDescriptor",
  "Literal",
  "Glob",
  "SingleQuoted",
  "DoubleQuoted",
  "AnsiCQuoted",
  "SimpleExpansion",
  "CommandExpansion",
  "ProcessSubstitution",
  "BraceExpansion",
  "ExtendedGlob",
  "Remove",
  "Replace",
  "CaseModification",
  "TestCommand",
  "TestLogical",
  "TestNot",
  "TestGroup",
  // Before a command, or an argument of one, it is a word that a rule has to spell.
  "Assignment",
  // Judged by the text of the whole calculation.
  "ArithmeticBinary",
  "ArithmeticUnary",
  "ArithmeticTernary",
  "ArithmeticGroup",
  "ArithmeticWord",
  "ArithmeticCommandExpansion",
]);

/** Why a node is more than what rules for single commands can answer for; undefined when it is not. */
function constructOf(node: SyntaxNode): string | undefined {
  if (plain.has(node.type)) return undefined;
  switch (node.type) {
    case "TestUnary":
      return plainUnary.has(node.operator) ? undefined : `\`[[ ${node.operator} ]]\``;
    case "TestBinary":
      return plainBinary.has(node.operator) ? undefined : `\`[[ ${node.operator} ]]\`, which calculates`;
    case "For":
      return isHarmlessVariable(node.name.text) ? undefined : `a loop over the variable \`${node.name.text}\``;
    case "ParameterExpansion":
      return node.index !== undefined || node.prefix === "!" ? "an expansion that calculates" : undefined;
    case "Default":
      return node.operator.includes("=") ? "an expansion that assigns" : undefined;
    case "Slice":
      return [node.offset, node.length].every(isNumber) ? undefined : "an expansion that calculates";
    case "ArithmeticExpansion":
      return /^\$\(\([\d\s+\-*/%()]*\)\)$/.test(node.text) ? undefined : "a calculation";
    default:
      return constructNames[node.type] ?? `\`${node.type}\``;
  }
}

const constructNames: { readonly [type: string]: string | undefined } = {
  Function: "a function",
  Coproc: "a coprocess",
  Select: "a menu",
  ArithmeticFor: "a counting loop",
  ArithmeticCommand: "a calculation",
  Transform: "an expansion that transforms",
  LocaleString: "a translated text",
  ArrayValue: "an array",
};

/** Those whose operands are texts and nothing is calculated from. */
const plainUnary = new Set(["-e", "-f", "-d", "-s", "-r", "-w", "-x", "-L", "-h", "-n", "-z", "-p", "-S"]);
const plainBinary = new Set(["=", "==", "!=", "=~", "<", ">", "-nt", "-ot", "-ef"]);

/** A loop writes to its variable, and some variables change what commands do. */
function isHarmlessVariable(name: string): boolean {
  return /^[a-z][a-z0-9]*$/.test(name);
}

/** An absent word is the whole rest. */
function isNumber(word: Word | undefined): boolean {
  return word === undefined || /^\s*-?\d+\s*$/.test(word.text);
}
