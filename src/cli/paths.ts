import { isAbsolute, relative } from "node:path";

/** A path as somebody in the working directory would type it. */
export function shortPath(path: string): string {
  const short = relative(process.cwd(), path);
  return short === "" || short.startsWith("..") || isAbsolute(short) ? path : short;
}
