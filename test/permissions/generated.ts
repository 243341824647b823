/** Numbers from 0 to below 1, the same for the same seed. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/**
 * Commands in which the word `evil` stands everywhere: as data, in comments, behind every kind of quote, and where it
 * would run. Half follow the grammar, half are its tokens in any order.
 */
export function commands(seed: number): () => string {
  const next = random(seed);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T;
  const times = (most: number): number[] => Array.from({ length: Math.floor(next() * (most + 1)) }, (_, at) => at);

  const word = (depth: number): string => {
    const simple = [
      "evil",
      "a",
      "-l",
      "--x=evil",
      "x;evil",
      "$HOME",
      "${x}",
      "*",
      "#evil",
      "a#b",
      "~",
      "{a,evil}",
      "\\;",
      "%s",
    ];
    if (depth <= 0 || next() < 0.5)
      return pick(["a", "-l", "evil", "$HOME", "${x:-evil}", "*", "a#b", "{a,evil}", "\\;", "\\\n", "e\\vil"]);
    switch (Math.floor(next() * 9)) {
      case 0:
        return `'${pick(simple)}${pick(["; evil", "$(evil)", "`evil`", "\n", "#", '"', "\\"])}'`;
      case 1:
        return `"${pick(["a", "'", "; evil", "\\$(evil)", "\\`evil\\`", "\n evil", "#", word(depth - 1).replaceAll('"', "")])}"`;
      case 2:
        return `$'${pick(["\\n evil", "\\'; evil", "\\x3b evil", "a\\\\", "\\e\\vil"])}'`;
      case 3:
        return `$(${line(depth - 1)})`;
      case 4:
        return `\${x:-${word(depth - 1)}}`;
      case 5:
        return `<(${line(depth - 1)})`;
      case 6:
        return `$((${pick(["1", "1+2", "(3)*4", "evil", "a[1]"])}))`;
      case 7:
        return word(depth - 1) + word(depth - 1);
      default:
        return `\`${pick(["ls", "echo evil", "evil", "echo \\`evil\\`", "echo a"])}\``;
    }
  };
  const simple = (depth: number): string => {
    const program = pick(["ls", "echo", "cat", "git status", "echo", "ls", "evil", "true"]);
    const args = times(3).map(() => word(depth));
    const redirect = pick(["", "", "", "", " 2>&1", " >/dev/null", " > out", " <<< evil", " < in", " 2>&-"]);
    return [program, ...args].join(" ") + redirect;
  };
  const line = (depth: number): string => {
    if (depth <= 0) return simple(0);
    switch (Math.floor(next() * 12)) {
      case 0:
        return `${simple(depth)} ${pick(["|", "&&", "||", ";", "|&", "&", "\n", ";\n"])} ${line(depth - 1)}`;
      case 1:
        return `(${line(depth - 1)})`;
      case 2:
        return `{ ${line(depth - 1)}; }`;
      case 3:
        return `if ${line(depth - 1)}; then ${line(depth - 1)}; fi`;
      case 4:
        return `for x in a evil; do ${line(depth - 1)}; done`;
      case 5:
        return `case evil in ${pick(["a|evil", "*", "(evil"])}) ${line(depth - 1)};; esac`;
      case 6: {
        const end = pick(["EOF", "'EOF'", "E'O'F", "\\EOF", '"E F"', "-EOF"]);
        const mark = end.replaceAll(/['"\\-]/g, "");
        return `cat <<${end}\n${pick(["evil", "$HOME evil", "a\n\tEOF b", "$(ls)", "\\$(evil)", "'", '"'])}\n${pick([mark, `\t${mark}`, mark])}`;
      }
      case 7:
        return `${simple(depth)} # evil ${pick(["'", '"', "$(", "`", "\\"])}\n${line(depth - 1)}`;
      case 8:
        return `! ${line(depth - 1)}`;
      case 9:
        return `[[ ${pick(["-f", "-n", "-z"])} ${word(1)} ]] && ${line(depth - 1)}`;
      default:
        return simple(depth);
    }
  };
  const tokens =
    "ls echo cat evil a ; & && | || ( ) { } ' \" ` \\ $( $(( )) ${ <( \n # $ ! [[ ]] if then fi for do done in case esac <<E E\n << <<< 2>&1 >&2 " +
    "* ? ~ = x= -l \\\n $' \t";
  const soup = (): string =>
    Array.from(
      { length: 2 + Math.floor(next() * 9) },
      () => pick(tokens.split(/(?<=[^ ]) /)) + pick(["", " ", " "]),
    ).join("");
  return () => (next() < 0.5 ? line(3) : `${pick(["echo ", "ls ", "cat ", ""])}${soup()}`);
}
