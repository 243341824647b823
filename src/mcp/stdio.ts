import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { isJsonObject } from "../model/json.ts";
import { type Dialogue, openDialogue } from "../process/dialogue.ts";
import type { Marks } from "../process/marks.ts";
import type { Launch } from "../process/namespace.ts";
import { exactMessage } from "./exact.ts";
import { isDeeperThan, Lines } from "./lines.ts";
import { type Address, largestMessage } from "./server.ts";

export interface StdioOptions {
  readonly address: Extract<Address, { kind: "stdio" }>;
  readonly marks: Marks;
  readonly launch?: Launch;
  /** Something a person should know that ends nothing. */
  readonly note: (message: string) => void;
}

/** What of a server's stderr is kept, for whoever has to find out why it ended. Bytes. */
const keptSaid = 64 * 1024;
const deepestMessage = 100;

/** The other end of a server that speaks over its stdin and stdout: a process of the run, supervised like every other. */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport["onmessage"];
  readonly #options: StdioOptions;
  readonly #lines: Lines;
  #dialogue: Dialogue | undefined;
  #said: Buffer = Buffer.alloc(0);
  #end: string | undefined;
  #isClosing = false;
  #hasBabbled = false;

  constructor(options: StdioOptions) {
    this.#options = options;
    const tooLong = (): void => this.#break(`it sent a message of more than ${largestMessage / 1024 / 1024} MB`);
    this.#lines = new Lines(largestMessage, (line) => this.#hear(line), tooLong);
  }

  /** How it ended, and the last that it said on stderr; undefined while it lives. */
  get end(): string | undefined {
    if (this.#end === undefined) return undefined;
    const lines = this.#said.toString("utf8").trim().split("\n");
    const last = lines.slice(-5);
    // The line that says why is the first of a dump, not the last.
    const telling = lines.findLast((line) => /^\S*error\b/i.test(line));
    const shown = telling === undefined || last.includes(telling) ? last : [telling.slice(0, 300), ...last];
    const said = shown.join("\n").slice(0, 1000);
    return said === "" ? this.#end : `${this.#end}; the last it said on stderr:\n${said}`;
  }

  async start(): Promise<void> {
    const { address, marks, launch } = this.#options;
    const started = await openDialogue({
      ...address,
      marks,
      ...(launch && { launch }),
      hear: { stdout: (chunk) => this.#lines.add(chunk), stderr: (chunk) => this.#keepSaid(chunk) },
    });
    if (started.kind === "spawn_failed") {
      this.#end = started.message;
      throw new Error(started.message);
    }
    this.#dialogue = started;
    void started.ended.then((how) => this.#over(`it ended (${how})`));
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#dialogue === undefined || this.#end !== undefined) throw new Error("it has ended");
    await this.#dialogue.write(`${JSON.stringify(message)}\n`);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#dialogue?.close();
    this.#over("it was ended");
  }

  #hear(line: string): void {
    if (this.#isClosing || line.trim() === "") return;
    const message = parseMessage(line);
    if (message === undefined) this.#babbled(line);
    else this.onmessage?.(message);
  }

  /** Told once: a server that prints its log to stdout would otherwise fill ours. */
  #babbled(line: string): void {
    if (this.#hasBabbled) return;
    this.#hasBabbled = true;
    this.#options.note(
      `it prints to stdout what is no message of the protocol, which is passed over: ${JSON.stringify(line.slice(0, 200))}`,
    );
  }

  #keepSaid(chunk: Buffer): void {
    this.#said = Buffer.concat([this.#said, chunk]).subarray(-keptSaid);
  }

  /** Ends a server that cannot be understood any more. */
  #break(why: string): void {
    this.#end ??= why;
    this.#dialogue?.close().then(
      () => this.#over(why),
      () => this.#over(why),
    );
  }

  #over(how: string): void {
    const isFirst = this.#end === undefined || !this.#isClosing;
    this.#end ??= how;
    this.#isClosing = true;
    if (isFirst) this.onclose?.();
  }
}

function parseMessage(line: string): JSONRPCMessage | undefined {
  if (isDeeperThan(line, deepestMessage)) return undefined;
  try {
    const value: unknown = JSON.parse(exactMessage(line));
    return isJsonObject(value) && value["jsonrpc"] === "2.0" ? (value as unknown as JSONRPCMessage) : undefined;
  } catch {
    return undefined;
  }
}
