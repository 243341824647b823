export type Paint = (text: string) => string;

/** The few looks the terminal output uses. */
export interface Palette {
  readonly bold: Paint;
  readonly dim: Paint;
  readonly red: Paint;
  readonly green: Paint;
  readonly yellow: Paint;
  readonly cyan: Paint;
}

const asIs: Paint = (text) => text;
export const plainPalette: Palette = { bold: asIs, dim: asIs, red: asIs, green: asIs, yellow: asIs, cyan: asIs };

export type ColourLevel = 0 | 1 | 2 | 3;

export interface ColourFacts {
  /** `--color` and `--no-color`; absent when neither was given. */
  readonly flag?: boolean;
  readonly env: { readonly [name: string]: string | undefined };
  readonly isTTY: boolean;
  /** `stream.getColorDepth()`. */
  readonly depth: number;
}

/** Decided once for a stream: flag, then NO_COLOR, then FORCE_COLOR, then whether somebody is watching. */
export function colourLevel({ flag, env, isTTY, depth }: ColourFacts): ColourLevel {
  const byDepth = depth >= 24 ? 3 : depth >= 8 ? 2 : 1;
  if (flag !== undefined) return flag ? byDepth : 0;
  if (isSet(env["NO_COLOR"])) return 0;
  const forced = env["FORCE_COLOR"];
  if (isSet(forced)) return forcedLevel(forced) ?? byDepth;
  return isTTY && depth > 1 && env["TERM"] !== "dumb" && !isSet(env["CI"]) ? byDepth : 0;
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== "";
}

function forcedLevel(value: string): ColourLevel | undefined {
  if (value === "0" || value === "false") return 0;
  if (value === "1" || value === "2" || value === "3") return Number(value) as ColourLevel;
  return undefined;
}

/** Loads chalk only when there is colour to make. */
export async function loadPalette(level: ColourLevel): Promise<Palette> {
  if (level === 0) return plainPalette;
  const { Chalk } = await import("chalk");
  const { bold, dim, red, green, yellow, cyan } = new Chalk({ level });
  return { bold, dim, red, green, yellow, cyan };
}
