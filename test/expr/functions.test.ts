import { describe, expect, test } from "vitest";
import { evaluate } from "../../src/expr/public.ts";
import { err, ok } from "../../src/model/result.ts";

const inputs = {
  list: [1, 2, 3],
  nested: [[1, [2]], 3, [], null],
  object: { b: 1, a: [2] },
  emoji: "a😀b",
  crlf: "one\r\ntwo\n\nfour\n",
  found: [
    { level: "High", id: 1 },
    { Level: "low", id: 2 },
    { level: "HIGH", id: 3 },
    null,
    { id: 4 },
    { level: null, id: 5 },
    { level: 1, id: 6 },
    { level: "1", id: 7 },
  ],
};

describe("the functions this language adds", () => {
  test.each([
    ["length('')", 0],
    ["length('abc')", 3],
    ["length(inputs.emoji)", 3],
    ["length(inputs.list)", 3],
    ["length(inputs.object)", 2],
    ["keys(inputs.object)", ["b", "a"]],
    ["values(inputs.object)", [1, [2]]],
    ["keys(fromJSON('{}'))", []],
    ["split('a,b,,c', ',')", ["a", "b", "", "c"]],
    ["split('', ',')", [""]],
    ["split('a--b-c', '--')", ["a", "b-c"]],
    ["trim('  a b\n')", "a b"],
    ["lower('ÄB')", "äb"],
    ["upper('äb')", "ÄB"],
    ["replace('a.b.c', '.', '')", "abc"],
    ["replace('aaa', 'a', 'aa')", "aaaaaa"],
    ["replace('$1', '$1', '$&')", "$&"],
    ["slice('hello', 1, 3)", "el"],
    ["slice('hello', -3)", "llo"],
    ["slice('hello', 0, -1)", "hell"],
    ["slice('hello', 9)", ""],
    ["slice(inputs.emoji, 1, 2)", "😀"],
    ["slice(inputs.list, 1)", [2, 3]],
    ["slice(inputs.list, -1)", [3]],
    ["lines('')", []],
    ["lines('a')", ["a"]],
    ["lines(inputs.crlf)", ["one", "two", "", "four"]],
    ["flatten(inputs.nested)", [1, [2], 3, null]],
    ["where(inputs.found, 'level', 'high').*.id", [1, 3]],
    ["where(inputs.found, 'LEVEL', 'low').*.id", [2]],
    ["where(inputs.found, 'level', null).*.id", [4, 5]],
    ["where(inputs.found, 'level', 1).*.id", [6]],
    ["where(inputs.found, 'level', '1').*.id", [7]],
    ["where(fromJSON('[]'), 'a', 1)", []],
    ["LENGTH(SPLIT('a b', ' '))", 2],
  ])("%s is %j", (source, expected) => {
    expect(evaluate(source, { inputs })).toEqual(ok(expected));
  });

  test.each([
    ["length(null)", "length() takes a text, a list or an object, not null"],
    ["length(5)", "length() takes a text, a list or an object, not 5"],
    ["keys(inputs.list)", "keys() takes an object, not a list"],
    ["values('x')", "values() takes an object, not the text 'x'"],
    ["split(1, ',')", "split() takes a text, not 1"],
    ["split('a', 1)", "split() takes a text as separator, not 1"],
    ["split('a', '')", "split() needs a separator that is not empty"],
    ["trim(null)", "trim() takes a text, not null"],
    ["lower(true)", "lower() takes a text, not true"],
    ["upper(inputs.object)", "upper() takes a text, not an object"],
    ["replace(1, 'a', 'b')", "replace() takes a text, not 1"],
    ["replace('a', 1, 'b')", "replace() takes a text to look for, not 1"],
    ["replace('a', 'a', 1)", "replace() takes a text as replacement, not 1"],
    ["replace('a', '', 'b')", "replace() needs a text to look for that is not empty"],
    ["slice(1, 1)", "slice() takes a text or a list, not 1"],
    ["slice('a', '1')", "slice() takes a whole number as start, not the text '1'"],
    ["slice('a', 0.5)", "slice() takes a whole number as start, not 0.5"],
    ["slice('a', 0, null)", "slice() takes a whole number as end, not null"],
    ["lines(inputs.list)", "lines() takes a text, not a list"],
    ["flatten('a')", "flatten() takes a list, not the text 'a'"],
    ["where('a', 'b', 1)", "where() takes a list, not the text 'a'"],
    ["where(inputs.list, 'b', 1)", "where() takes a list of objects, but item 0 is 1"],
    ["where(inputs.found, 1, 1)", "where() takes a text as field, not 1"],
    ["where(inputs.found, 'a', inputs.list)", "where() takes a plain value to compare with, not a list"],
  ])("%s is an error at the call", (source, message) => {
    const error = { kind: "evaluation", message, offset: 0, length: source.length };
    expect(evaluate(source, { inputs })).toEqual(err(error));
  });
});

describe("GitHub's functions where the published cases are silent", () => {
  test.each([
    ["case(true, 1, fromJSON('broken'), 2, 3)", 1],
    ["case(false, fromJSON('broken'), true, 2, 3)", 2],
    ["format('{0}', 0.1)", "0.1"],
    ["format('{0}', 1e-20)", "1e-20"],
    ["format('{0} {0}', 'a''b''c')", "a'b'c a'b'c"],
    ["join(inputs.nested, '|')", "Array|3|Array|"],
    ["contains(inputs.object, 'a')", false],
    ['fromJSON(\'{"a":1,"A":2}\').A', 2],
    ['fromJSON(\'{"a":1,"B":2}\').A', 1],
  ])("%s is %j", (source, expected) => {
    expect(evaluate(source, { inputs })).toEqual(ok(expected));
  });

  test.each([
    ["fromJSON('{')", "Error parsing JSON when evaluating fromJSON"],
    ["fromJSON(null)", "fromJSON() was given an empty text"],
    ["format('{0:yyyy}', 1)", "The following format string is invalid: {0:yyyy}"],
    ["format('{9999999999}', 1)", "references more arguments than were supplied"],
  ])("%s is an error", (source, message) => {
    expect(evaluate(source, { inputs })).toMatchObject({
      ok: false,
      error: { message: expect.stringContaining(message) },
    });
  });
});

describe("hashFiles", () => {
  const hashFiles = (globs: readonly string[]): ReturnType<typeof ok<string>> | ReturnType<typeof err<string>> =>
    globs.includes("none") ? err("no file matches") : ok(globs.join("+"));

  test("is the scope's own", () => {
    expect(evaluate("hashFiles('a', 'b')", {}, { hashFiles })).toEqual(ok("a+b"));
  });

  test.each([
    ["hashFiles('none')", "no file matches", 0],
    ["hashFiles(1)", "hashFiles() takes file patterns, not 1", 10],
  ])("%s is an error", (source, message, offset) => {
    expect(evaluate(source, {}, { hashFiles })).toMatchObject({ error: { kind: "evaluation", message, offset } });
  });
});
