const maxLines = 2_000;
const maxBytes = 50 * 1024;

/**
 * A tool's text as the model may see it: whole, or its first 2,000 lines or 50 KB with a line that says what is
 * missing and where the whole lies. No text at all is said in words, because some servers refuse an empty result.
 */
export function capped(text: string, spill: (text: string) => string): { text: string; file?: string } {
  if (text === "") return { text: "(no output)" };
  const head = firstBytes(firstLines(text));
  if (head.length === text.length) return { text };
  const file = spill(text);
  const shown = `${countLines(head)} of ${countLines(text)} lines, ${Buffer.byteLength(head)} of ${Buffer.byteLength(text)} bytes`;
  return { text: `${head}\n[cut: ${shown} are shown; the whole is in ${file}]`, file };
}

function firstLines(text: string): string {
  let end = -1;
  for (let line = 0; line < maxLines; line++) {
    end = text.indexOf("\n", end + 1);
    if (end === -1) return text;
  }
  return end === text.length - 1 ? text : text.slice(0, end);
}

/** Cut between characters, never inside one. */
function firstBytes(text: string): string {
  const bytes = Buffer.from(text.slice(0, maxBytes));
  if (bytes.length <= maxBytes && text.length <= maxBytes) return text;
  let end = Math.min(maxBytes, bytes.length);
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end);
}

function countLines(text: string): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}
