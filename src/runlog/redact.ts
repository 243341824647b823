import { formsOf } from "./forms.ts";
import { type LiteralSearch, literalSearch } from "./search.ts";

export interface Secret {
  readonly name: string;
  readonly value: string;
}

export interface Mask {
  /** The text with every form of every secret replaced by `***`; the same string when it holds none. */
  readonly mask: (text: string) => string;
  /** A mask for one text that arrives in pieces. */
  readonly stream: () => StreamMask;
  /** One sentence for each secret that is not masked. */
  readonly warnings: readonly string[];
}

/** `push` gives back what can no longer become part of a secret; `end` the rest. Together they equal the mask of the whole. */
export interface StreamMask {
  push(piece: string): string;
  end(): string;
}

const shortestSecret = 4;
const cover = "***";

/** What cannot be masked: wrapped base64, compressed or encrypted text, and characters spaced apart. */
export function createMask(secrets: readonly Secret[]): Mask {
  const tooShort = secrets.filter(({ value }) => value !== "" && value.trim().length < shortestSecret);
  const masked = secrets.filter(({ value }) => value.trim().length >= shortestSecret);
  const forms = masked.flatMap(({ value }) => formsOf(value)).filter((form) => form.length >= shortestSecret);
  const search = literalSearch(forms);
  return {
    mask: (text) => maskUpTo(search, text, text.length).text,
    stream: () => createStreamMask(search),
    warnings: tooShort.map(
      ({ name }) => `secret ${name} has fewer than ${shortestSecret} characters and is not masked`,
    ),
  };
}

/** Masks what begins before `limit`; `end` is where the rest begins. */
function maskUpTo(search: LiteralSearch, text: string, limit: number): { text: string; end: number } {
  let start = search.next(text, 0);
  if (start < 0 && limit === text.length) return { text, end: limit };
  let done = "";
  let end = 0;
  for (; start >= 0 && start < limit; start = search.next(text, end)) {
    done += text.slice(end, start) + cover;
    end = start + search.lengthAt(text, start);
  }
  return end < limit ? { text: done + text.slice(end, limit), end: limit } : { text: done, end };
}

function createStreamMask(search: LiteralSearch): StreamMask {
  let held = "";
  return {
    push(piece) {
      held += piece;
      let safe = "";
      // A match may end behind the place where the next could begin, so that place is looked for again after it.
      for (let open = search.openAt(held, 0); ; open = search.openAt(held, 0)) {
        const { text, end } = maskUpTo(search, held, open);
        safe += text;
        held = held.slice(end);
        if (end <= open) return safe;
      }
    },
    end() {
      const { text } = maskUpTo(search, held, held.length);
      held = "";
      return text;
    },
  };
}
