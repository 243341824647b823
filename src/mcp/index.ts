export { type CallFailure, type Connection, connect, type ConnectOptions } from "./connect.ts";
export { prefixOf } from "./names.ts";
export { changeOf, type Pin, pinKey, pinOf, type Pins, readPins, writePins } from "./pin.ts";
export { ServerPool } from "./pool.ts";
export type { ServerSpec, ServerTool } from "./server.ts";
export { isRequired, specOf, type SpecSource } from "./spec.ts";
export { isNamed, toolsOf } from "./tools.ts";
