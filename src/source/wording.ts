import type { YAMLError } from "yaml";
import type { Code } from "../model/codes.ts";
import { shown } from "./refusals.ts";
import type { Positions } from "./positions.ts";
import type { Problem } from "./text.ts";

/** The library's complaint in plain words, with what to write instead. */
export function reword(error: YAMLError, positions: Positions): Problem {
  const { text } = positions;
  const [from, end] = error.pos;
  const to = Math.max(from, Math.min(end, positions.lineEnd(from)));
  const known = phrases.find(([start]) => error.message.startsWith(start));
  const [message, suggestion] =
    missingSpace(error, text.slice(from, to)) ?? (known === undefined ? byCode(error, text) : [known[1], known[2]]);
  return {
    code: codes[error.code] ?? "FLOW1006",
    message,
    from,
    to,
    ...(suggestion === undefined ? {} : { suggestion }),
  };
}

/** `name:flow` makes one long key of this line and the next. */
function missingSpace(error: YAMLError, line: string): Phrase | undefined {
  if (error.code !== "MULTILINE_IMPLICIT_KEY") return undefined;
  const key = /^[\w-]+:(?=\S)/.exec(line)?.[0];
  if (key === undefined) return undefined;
  return [`a space is missing after ${shown(key)}`, `Write ${shown(`${key} ${line.slice(key.length)}`)}.`];
}

type Phrase = readonly [message: string, suggestion?: string | undefined];

/** How the library's message begins, and ours. */
const phrases: readonly (readonly [start: string, message: string, suggestion?: string])[] = [
  ["Tabs are not allowed", "a tab is used for indentation; YAML allows only spaces", "Replace the tab by spaces."],
  [
    "Nested mappings are not allowed",
    "this value holds `: `, so YAML reads it as a mapping inside the line",
    "Put the value in quotes, or begin the inner mapping on a new line.",
  ],
  [
    "A block sequence may not",
    "the indentation of this `-` fits no list above it",
    "Align it with the other items of its list.",
  ],
  [
    "Unexpected block-seq-ind",
    "a list cannot begin on the line of its key",
    "Begin the list on a new line, or write it as [a, b].",
  ],
  [
    "All mapping items must start",
    "the indentation of this line fits no mapping above it",
    "Align it with the keys it belongs to.",
  ],
  [
    "All sequence items must start",
    "the indentation of this `-` fits no list above it",
    "Align it with the other items of its list.",
  ],
  [
    "Implicit map keys need",
    "this line of a mapping has no colon",
    "Write `key: value`; if the line continues the text above, indent it or put the whole text in quotes.",
  ],
  [
    "Implicit keys need to be on a single line",
    "this line of a mapping has no colon",
    "Write `key: value`; if the line continues the text above, indent it or put the whole text in quotes.",
  ],
  ["Implicit keys of flow sequence", "a key inside [ ] must stand on one line with its colon"],
  ["The : indicator must be", "a key has more than 1,024 characters", "Look for a quote that is not closed."],
  ["Missing closing", "a quote is never closed", "Close the quote."],
  ["Missing , or : between flow map", "a comma or colon is missing inside { }", "Separate the entries by commas."],
  ["Missing , between flow map", "a comma is missing inside { }", "Separate the entries by commas."],
  ["Missing , ", "a comma is missing inside [ ]", "Separate the items by commas."],
  ["Missing space after :", "a space is missing after the colon", "Write `key: value`."],
  ["Flow map", "a `{` is never closed", "Close it with `}`; its lines must be indented deeper than its key."],
  ["Flow sequence", "a `[` is never closed", "Close it with `]`; its lines must be indented deeper than its key."],
  ["Unexpected , in", "a comma with nothing before it", "Remove the comma."],
  ["Unexpected empty item", "an item is missing before this comma", "Remove the comma."],
  ["Block collections are not allowed", "a list or mapping by indentation cannot stand inside [ ] or { }"],
  [
    "Sequence item without - indicator",
    "this line follows a list and does not begin with `- `",
    "Begin it with `- `, or correct its indentation.",
  ],
  [
    "Block scalars with more-indented",
    "an empty line at the start of this text is indented deeper than the text",
    "Remove the spaces of the empty line.",
  ],
  [
    "Block scalar lines must not",
    "a line of this text is indented less than its first line",
    "Indent every line of the text at least as deep as the first.",
  ],
  ["Block scalar values in", "a text after `|` or `>` must be indented deeper than its key", "Indent the text."],
  [
    "Block scalar header",
    "text cannot follow `|` or `>` on the same line",
    "Begin the text on the next line, indented, or put the value in quotes.",
  ],
  ["Comments must be separated", "a space is missing before `#`", "Write a space before `#`, or quote the text."],
  ["Block collection cannot start", "a mapping cannot begin on the line of `---`", "Begin it on the next line."],
  ["With stringKeys", "a key must be text, not a list, mapping or alias", "Write the key as text."],
  ["Tags and anchors must be", "a space is missing after an anchor (`&name`)", "Quote the value if `&` belongs to it."],
  ["A node can have at most one anchor", "a value has two anchors (`&name`)", "Quote it if `&` belongs to the text."],
  ["An alias node must not", "an alias (`*name`) cannot have an anchor of its own", "Remove the anchor."],
  ["Alias cannot be an empty", "`*` begins an alias and needs a name", "Quote the value if `*` belongs to the text."],
  ["Anchor cannot be an empty", "`&` begins an anchor and needs a name", "Quote the value if `&` belongs to the text."],
  ["Alias ending in :", "an alias cannot end in a colon", "Write a space before the colon."],
  ["Anchor ending in :", "an anchor cannot end in a colon", "Write a space before the colon."],
];

function byCode(error: YAMLError, text: string): Phrase {
  const at = error.pos[0];
  if (error.code === "BAD_SCALAR_START")
    return [
      `a value cannot begin with ${text[at] === "`" ? "a backquote" : shown(text[at] ?? "")}`,
      "Put the value in quotes.",
    ];
  if (error.code === "BAD_DQ_ESCAPE")
    return [
      `${shown(text.slice(at, at + 2))} is not an escape that double quotes know`,
      "Write `\\\\` for a backslash, or use single quotes.",
    ];
  if (error.code === "UNEXPECTED_TOKEN")
    return [
      "text follows where the value has already ended",
      "If it belongs to the value, put the whole value in quotes.",
    ];
  return [error.message.charAt(0).toLowerCase() + error.message.slice(1)];
}

/** Every other complaint is about syntax. */
const codes: { readonly [code in YAMLError["code"]]?: Code } = {
  NON_STRING_KEY: "FLOW1012",
  BAD_ALIAS: "FLOW1009",
  ALIAS_PROPS: "FLOW1009",
  MULTIPLE_ANCHORS: "FLOW1009",
  RESOURCE_EXHAUSTION: "FLOW1010",
  BAD_DIRECTIVE: "FLOW1007",
  MULTIPLE_DOCS: "FLOW1008",
  MULTIPLE_TAGS: "FLOW1013",
  TAG_RESOLVE_FAILED: "FLOW1013",
  BAD_COLLECTION_TYPE: "FLOW1013",
};
