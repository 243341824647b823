import type { Json, JsonObject } from "../model/json.ts";
import { isJsonObject, own } from "../model/json.ts";
import type { ModelDelta } from "../model/ports.ts";
import { countAt, objectAt, textAt } from "./fields.ts";

interface Call {
  /** The index and the id the server gave, if any. */
  readonly wireIndex: number | undefined;
  readonly wireId: string;
  /** Its place in the message. */
  readonly index: number;
  readonly id: string;
  name: string;
  /** False until the name has come; arguments wait for it. */
  announced: boolean;
  waiting: string;
}

/** The tool calls of one reply, told apart however a server numbers their pieces. */
export class CallPieces {
  readonly #calls: Call[] = [];
  readonly #idPrefix: string;

  /** `idPrefix` makes ids for calls that came without one, or with one another call of the message has. */
  constructor(idPrefix: string) {
    this.#idPrefix = idPrefix;
  }

  get count(): number {
    return this.#calls.length;
  }

  /** The deltas of one entry of `tool_calls`. */
  read(part: JsonObject): ModelDelta[] {
    const spec = objectAt(part, "function");
    const name = textAt(spec, "name");
    const args = argumentText(own(spec, "arguments"));
    const call = this.#known(part, name) ?? this.#begin(part);
    call.name ||= name;
    if (call.announced) return args === "" ? [] : [{ type: "args", index: call.index, text: args }];
    call.waiting += args;
    return call.name === "" ? [] : announce(call);
  }

  /** The calls whose name never came. */
  flush(): ModelDelta[] {
    return this.#calls.filter(({ announced }) => !announced).flatMap(announce);
  }

  /**
   * The call a piece goes on with. The index decides; but a named piece with another id begins a call of its own, since
   * some servers give every call the same index. Without an index the id decides; without both, a name begins a call
   * and what has no name belongs to the last one.
   */
  #known(part: JsonObject, name: string): Call | undefined {
    const wireIndex = countAt(part, "index");
    const wireId = textAt(part, "id");
    if (wireIndex !== undefined) {
      const call = this.#calls.findLast((each) => each.wireIndex === wireIndex);
      const isAnother = name !== "" && wireId !== "" && call?.wireId !== "" && call?.wireId !== wireId;
      return isAnother ? undefined : call;
    }
    if (wireId !== "") return this.#calls.findLast((call) => call.wireId === wireId);
    const last = this.#calls.at(-1);
    return name !== "" && last?.name !== "" ? undefined : last;
  }

  #begin(part: JsonObject): Call {
    const wireIndex = countAt(part, "index");
    const wireId = textAt(part, "id");
    const isTaken = this.#calls.some(({ index }) => index === wireIndex);
    const next = 1 + Math.max(-1, ...this.#calls.map((call) => call.index));
    const index = wireIndex === undefined || isTaken ? next : wireIndex;
    const isOwnId = wireId !== "" && !this.#calls.some(({ id }) => id === wireId);
    const id = isOwnId ? wireId : `${this.#idPrefix}_${index}`;
    const call: Call = { wireIndex, wireId, index, id, name: "", announced: false, waiting: "" };
    this.#calls.push(call);
    return call;
  }
}

function announce(call: Call): ModelDelta[] {
  call.announced = true;
  const { index, id, name, waiting } = call;
  const begun: ModelDelta = { type: "call", index, id, name };
  return waiting === "" ? [begun] : [begun, { type: "args", index, text: waiting }];
}

/** Some servers send the arguments as an object, in one piece. */
function argumentText(value: Json | undefined): string {
  if (typeof value === "string") return value;
  return isJsonObject(value) ? JSON.stringify(value) : "";
}
