import type { JsonObject } from "../model/json.ts";

/** A server with nothing left to fill in. Equal ones are one server to a run. */
export interface ServerSpec {
  readonly name: string;
  readonly address: Address;
  /** Milliseconds a call may take without a sign of progress. */
  readonly callTime: number;
}

export type Address =
  | {
      readonly kind: "stdio";
      readonly argv: readonly string[];
      readonly cwd: string;
      /** All of it. */
      readonly env: Readonly<Record<string, string>>;
      /** The workspace in whose sandbox it is started; absent: in none. */
      readonly sandbox?: string;
    }
  /** `sse` is the transport that streamable HTTP has replaced. */
  | { readonly kind: "http" | "sse"; readonly url: string; readonly headers: Readonly<Record<string, string>> };

/** A tool as its server describes it: untrusted text. */
export interface ServerTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, root `type: object`, as far as it can be used here; the server checks them itself. */
  readonly parameters: JsonObject;
  /** JSON Schema of the structured content; absent when it gives none that can be used. */
  readonly output?: JsonObject;
  /** 32 hex digits that stand for name, description and schemas as the server wrote them. */
  readonly digest: string;
  /** The server says that it changes nothing. */
  readonly readOnly: boolean;
}

/** Bytes of one message; a longer one ends the connection. */
export const largestMessage: number = 16 * 1024 * 1024;
/** Milliseconds from the start of a server until its tools are known. */
export const startTime = 10_000;
export const defaultCallTime = 120_000;
