import { isJsonObject } from "../model/json.ts";

/** A part of a secret (a line, a leaf) shorter than this is too common a word to hide. */
const shortestPart = 8;
/** How often a text may have been put into JSON text inside JSON text; the log adds the last. */
const escapeDepth = 3;

/** Every form in which the value of a secret may turn up in text: itself and its parts, each plain and encoded. */
export function formsOf(secret: string): readonly string[] {
  return [...partsOf(secret)].flatMap(encodingsOf);
}

/** The value, the value without the white space around it, its lines, and the strings in it when it is JSON. */
function partsOf(secret: string): Set<string> {
  const parts = new Set([secret, secret.trim()]);
  const addLines = (text: string): void => {
    for (const line of text.split(/[\r\n]+/)) if (line.trim().length >= shortestPart) parts.add(line.trim());
  };
  addLines(secret);
  for (const leaf of stringsIn(parsed(secret))) {
    if (leaf.length < shortestPart) continue;
    parts.add(leaf);
    addLines(leaf);
  }
  return parts;
}

function parsed(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function stringsIn(root: unknown): string[] {
  const found: string[] = [];
  const open: unknown[] = [root];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === "string") found.push(value);
    else if (Array.isArray(value)) open.push(...value);
    else if (isJsonObject(value)) open.push(...Object.values(value));
  }
  return found;
}

function encodingsOf(part: string): string[] {
  const text = part.toWellFormed();
  const bytes = Buffer.from(text);
  const hex = bytes.toString("hex");
  return [
    part,
    ...[JSON.stringify, asciiJson, htmlSafeJson].flatMap((escape) => escaped(part, escape)),
    ...urlForms(text),
    ...base64Forms(bytes),
    hex,
    hex.toUpperCase(),
    ...htmlForms(part),
  ];
}

function escaped(text: string, escape: (text: string) => string): string[] {
  const forms: string[] = [];
  for (let form = text; forms.length < escapeDepth; forms.push(form)) form = escape(form).slice(1, -1);
  return forms;
}

/** As Python writes it. */
function asciiJson(text: string): string {
  return JSON.stringify(text).replace(/[^\0-\x7e]/g, unicodeEscape);
}

/** As Go writes it. */
function htmlSafeJson(text: string): string {
  return JSON.stringify(text).replace(/[<>&\u2028\u2029]/g, unicodeEscape);
}

function unicodeEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function urlForms(text: string): string[] {
  const component = encodeURIComponent(text);
  const strict = component.replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
  const form = new URLSearchParams([["", text]]).toString().slice(1);
  const upper = [component, strict, strict.replaceAll("%20", "+"), form, encodeURI(text)];
  return upper.concat(upper.map((value) => value.replace(/%[0-9A-F]{2}/g, (octet) => octet.toLowerCase())));
}

/** The whole with its padding, and, for each place within a triple of bytes, the characters no neighbour can change. */
function base64Forms(bytes: Buffer): string[] {
  const whole = bytes.toString("base64");
  const forms = [whole, whole.replace(/=+$/, ""), bytes.toString("base64url")];
  for (const before of [0, 1, 2]) {
    const padded = Buffer.concat([Buffer.alloc(before), bytes]);
    const first = Math.ceil((before * 8) / 6);
    const end = Math.floor((padded.length * 8) / 6);
    for (const alphabet of ["base64", "base64url"] as const) forms.push(padded.toString(alphabet).slice(first, end));
  }
  return forms;
}

function htmlForms(text: string): string[] {
  const base = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const quoted = base.replaceAll('"', "&quot;");
  return [
    base,
    quoted,
    quoted.replaceAll("'", "&#39;"),
    quoted.replaceAll("'", "&#x27;"),
    base.replaceAll('"', "&#34;").replaceAll("'", "&#39;"),
  ];
}
