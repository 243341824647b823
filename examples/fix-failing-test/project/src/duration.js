const units = { h: 3_600_000, m: 60_000, s: 1_000 };

/** Milliseconds of a text such as `90s` or `1h30m`; throws for any other text. */
export function parseDuration(text) {
  const match = /^(\d+)([hms])/.exec(text);
  if (match === null) throw new Error(`not a duration: ${text}`);
  return Number(match[1]) * units[match[2]];
}
