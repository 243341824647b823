/**
 * Every diagnostic code with its one-line meaning. The thousands digit is the area: 1 the file and its YAML, 2 its shape,
 * 3 names and links, 4 the graph, 5 expressions, 6 agents, 7 inputs given to a run, 8 safety, 9 what is not there yet.
 * A code is never reused; each has a fixture in `test/compile/err` and a line in `docs/diagnostics.md`.
 */
export const codes = {
  FLOW1001: "the file cannot be read",
  FLOW1002: "the path is not a regular file",
  FLOW1003: "the file is too large",
  FLOW1004: "the file is not UTF-8",
  FLOW1005: "a control character or byte order mark inside the file",
  FLOW1006: "YAML syntax",
  FLOW1007: "a YAML directive",
  FLOW1008: "more than one YAML document",
  FLOW1009: "too many anchors or aliases, or an alias without its anchor",
  FLOW1010: "nested too deep",
  FLOW1011: "a key that appears twice in one mapping",
  FLOW1012: "a key that is not a string, or a merge key",
  FLOW1013: "a YAML tag",
  FLOW1014: "an expression that YAML has cut or swallowed",
  FLOW1015: "too many entries",
  FLOW1016: "a key that JavaScript objects inherit",
  FLOW1017: "front matter is missing or not closed",
  FLOW1018: "front matter that is not valid YAML, read line by line",
} as const;

export type Code = keyof typeof codes;
