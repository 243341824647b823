export type { CallFailure, Connection } from "./connect.ts";
export { prefixOf } from "./names.ts";
export { changeOf, pinKey, pinOf, type Pins, readPins, writePins } from "./pin.ts";
export { ServerPool } from "./pool.ts";
export type { ServerSpec } from "./server.ts";
export { isRequired, specOf } from "./spec.ts";
export { isNamed, toolsOf } from "./tools.ts";
