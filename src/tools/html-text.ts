/** What no reader of a page sees. */
const hidden = new Set(["script", "style", "noscript", "template", "svg", "head"]);
/** Tags before and after which a line begins. */
const blocks = new Set(
  (
    "address article aside blockquote br dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 " +
    "header hr li main nav ol p pre section table tbody td tfoot th thead title tr ul"
  ).split(" "),
);
const named: { readonly [name: string]: string } = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
  copy: "©",
  ndash: "–",
  mdash: "—",
  hellip: "…",
  laquo: "«",
  raquo: "»",
  lsquo: "‘",
  rsquo: "’",
  ldquo: "“",
  rdquo: "”",
  bull: "•",
  middot: "·",
  rarr: "→",
};

/** The text of a page, one line a block; links keep their address. Reads it once from front to back. */
export function htmlText(html: string): string {
  const out: string[] = [];
  let at = 0;
  let link = "";
  while (at < html.length) {
    const open = html.indexOf("<", at);
    out.push(decode(html.slice(at, open === -1 ? html.length : open).replaceAll(/\s+/g, " ")));
    if (open === -1) break;
    if (html.startsWith("<!--", open)) {
      at = after(html, "-->", open + 4);
      continue;
    }
    const close = endOfTag(html, open + 1);
    const tag = html.slice(open + 1, close);
    at = close + 1;
    const name = (/^\/?\s*([a-z][a-z0-9]*)/i.exec(tag)?.[1] ?? "").toLowerCase();
    const isEnd = tag.startsWith("/");
    if (!isEnd && hidden.has(name) && !tag.endsWith("/")) at = afterElement(html, name, at);
    else if (name === "li" && !isEnd) out.push("\n- ");
    else if (/^h[1-6]$/.test(name)) out.push(isEnd ? "\n" : `\n\n${"#".repeat(Number(name[1]))} `);
    else if (blocks.has(name)) out.push("\n");
    else if (name === "a" && !isEnd) link = hrefOf(tag);
    else if (name === "a" && link !== "") {
      out.push(` (${link})`);
      link = "";
    }
  }
  const lines = out.join("").split("\n");
  return lines
    .map((line) => line.trim())
    .join("\n")
    .replaceAll(/\n{3,}/g, "\n\n")
    .trim();
}

function after(text: string, end: string, from: number): number {
  const found = text.indexOf(end, from);
  return found === -1 ? text.length : found + end.length;
}

/** Where the tag closes; a `>` inside a quoted attribute does not. */
function endOfTag(html: string, from: number): number {
  let quote = "";
  for (let at = from; at < html.length; at++) {
    const char = html[at] ?? "";
    if (quote !== "") {
      if (char === quote) quote = "";
    } else if (char === ">") return at;
    else if ((char === '"' || char === "'") && html[at - 1] === "=") quote = char;
  }
  return html.length;
}

function afterElement(html: string, name: string, from: number): number {
  let at = from;
  for (;;) {
    at = html.indexOf("</", at);
    if (at === -1) return html.length;
    if (html.slice(at + 2, at + 2 + name.length).toLowerCase() === name) return after(html, ">", at);
    at += 2;
  }
}

function hrefOf(tag: string): string {
  const address = /\shref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/i.exec(tag);
  const href = decode(address?.[1] ?? address?.[2] ?? address?.[3] ?? "");
  return /^https?:/i.test(href) ? href : "";
}

function decode(text: string): string {
  return text.replaceAll(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,8}));/gi, (whole, decimal, hex, name: string) => {
    if (name !== undefined) return Object.hasOwn(named, name) ? (named[name] ?? whole) : whole;
    const code = decimal === undefined ? Number.parseInt(String(hex), 16) : Number(decimal);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
