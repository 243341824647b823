import { unknown } from "./pattern.ts";
import { type Deed, readScript, type Unbash } from "./script.ts";
import { joinWords, type ShellWord } from "./shell-word.ts";
import { isAssignment, type IsSecret, Marker } from "./words.ts";

/** Programs that run what their arguments say. Rules that forbid look through them; rules that allow do not. */
const wrappers = new Set(
  (
    "env command exec builtin sudo doas nohup timeout nice ionice setsid stdbuf watch xargs parallel busybox toybox time " +
    "chroot unshare nsenter strace ltrace flock script find fd entr npx pnpx bunx su runuser caffeinate chronic ts " +
    "systemd-run eatmydata faketime gosu tini dumb-init catchsegv prlimit taskset chrt numactl setarch"
  ).split(" "),
);
/** Those that take a script as text. */
const shells = new Set(["sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "su", "script", "watch"]);
const deepest = 5;
const longest = 64;

/** A command as symbols, with a mark before each word that no wildcard may pass. */
export function commandSymbols(words: readonly ShellWord[], isSecret: IsSecret): number[] {
  const marker = new Marker(isSecret);
  return joinWords(
    words.map((word) => {
      const unknowns = word.text === undefined ? { forms: word.forms, splits: word.splits } : undefined;
      return { ...word, symbols: [...marker.mark(spellingOf(word), unknowns), ...word.symbols] };
    }),
  );
}

function spellingOf({ text, symbols }: ShellWord): string {
  return text ?? String.fromCharCode(...symbols.filter((symbol) => symbol !== unknown));
}

/** Everything a command may come to that is not written as a command of its own. */
export function readingsOf(words: readonly ShellWord[], unbash: Unbash, depth = 0): number[][] {
  const start = words.findIndex((word) => !isAssignment(spellingOf(word)));
  const command = words.slice(Math.max(0, start), start + longest);
  const program = command[0]?.text;
  if (program === undefined || depth > deepest) return start > 0 ? [joinWords(command)] : [];
  const name = program.slice(program.lastIndexOf("/") + 1);
  const readings = name !== program || start > 0 ? [joinWords([plain(name), ...command.slice(1)])] : [];
  const inner = (rest: readonly ShellWord[]): number[][] => [joinWords(rest), ...readingsOf(rest, unbash, depth + 1)];
  if (wrappers.has(name)) for (let at = 1; at < command.length; at++) readings.push(...inner(command.slice(at)));
  for (const script of scriptsOf(name, command)) {
    if (script === undefined) readings.push([unknown]);
    else readings.push(...commandsIn(script, unbash).flatMap((it) => inner(it.words)));
  }
  return readings;
}

function plain(text: string): ShellWord {
  return { text, symbols: Array.from({ length: text.length }, (_, at) => text.charCodeAt(at)), splits: false };
}

/** Texts that a command would run as scripts; undefined for one that is not known yet. */
function scriptsOf(name: string, command: readonly ShellWord[]): (string | undefined)[] {
  const args = command.slice(1);
  if (name === "eval") {
    const texts = args.map(({ text }) => text);
    return [texts.every((text) => text !== undefined) ? texts.join(" ") : undefined];
  }
  if (name === "trap") return args.slice(0, 1).map(({ text }) => text);
  if (name === "env")
    return args.flatMap(({ text }, at) => (text === "-S" || text === "--split-string" ? [args[at + 1]?.text] : []));
  if (!shells.has(name)) return [];
  return args.flatMap(({ text }, at) => (text !== undefined && /^-[a-z]*c$/.test(text) ? [args[at + 1]?.text] : []));
}

function commandsIn(script: string, unbash: Unbash): Extract<Deed, { type: "command" }>[] {
  const deeds = readScript(script, unbash);
  return deeds.ok ? deeds.value.filter((deed) => deed.type === "command") : [];
}
