/** Timers take at most this many milliseconds (2^31 - 1, about 24.8 days); a longer one would fire at once. */
export const longestDuration = 2_147_483_647;

/** Milliseconds of `30s`, `1h30m`, `2d`, `500ms`; undefined when `text` is not a duration or is zero. */
export function parseDuration(text: string): number | undefined {
  const match = /^(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?(?:(\d{1,12})ms)?$/.exec(text.trim());
  if (!match) return undefined;
  const [days, hours, minutes, seconds, milliseconds] = match.slice(1, 6).map((part) => Number(part ?? 0));
  const total =
    ((((days ?? 0) * 24 + (hours ?? 0)) * 60 + (minutes ?? 0)) * 60 + (seconds ?? 0)) * 1000 + (milliseconds ?? 0);
  return total > 0 ? total : undefined;
}
