import type { Delta } from "../model/agent-event.ts";
import type { Event } from "../model/event.ts";
import type { StreamMask } from "./redact.ts";

export type DeltaEvent = Extract<Event, { type: "message.delta" }>;

interface Open {
  readonly last: DeltaEvent;
  readonly mask: StreamMask;
}

/** Masks deltas so that a secret cut into pieces is still found: each text of each agent has its own tail. */
export interface DeltaStreams {
  /** What can be logged now: the tail of a text this delta ends, and this delta without its own tail. */
  push(event: DeltaEvent): DeltaEvent[];
  /** The tails that this state event ends. */
  settle(event: Event): DeltaEvent[];
  end(): DeltaEvent[];
}

export function createDeltaStreams(createMask: () => StreamMask): DeltaStreams {
  /** By agent: the text it is in the middle of. */
  const open = new Map<string, Open>();

  const finish = (agent: string): DeltaEvent[] => {
    const stream = open.get(agent);
    open.delete(agent);
    return stream === undefined ? [] : withText(stream.last, stream.mask.end());
  };
  return {
    push(event) {
      const before = open.get(event.agent);
      const ended = before === undefined || isSameText(before.last, event) ? [] : finish(event.agent);
      if (event.delta.type === "call.started") return [...ended, maskedStart(event, createMask())];
      const mask = open.get(event.agent)?.mask ?? createMask();
      open.set(event.agent, { last: event, mask });
      return [...ended, ...withText(event, mask.push(event.delta.text))];
    },
    settle: (event) => ("agent" in event ? finish(event.agent) : event.type === "run.finished" ? endAll() : []),
    end: endAll,
  };

  function endAll(): DeltaEvent[] {
    return [...open.keys()].flatMap(finish);
  }
}

function isSameText(a: DeltaEvent, b: DeltaEvent): boolean {
  return a.turn === b.turn && a.delta.type === b.delta.type && callOf(a.delta) === callOf(b.delta);
}

function callOf(delta: Delta): string | undefined {
  return "id" in delta ? delta.id : undefined;
}

function withText(event: DeltaEvent, text: string): DeltaEvent[] {
  if (text === "" || event.delta.type === "call.started") return [];
  return [{ ...event, delta: { ...event.delta, text } }];
}

function maskedStart(event: DeltaEvent, mask: StreamMask): DeltaEvent {
  if (event.delta.type !== "call.started") return event;
  return { ...event, delta: { ...event.delta, name: mask.push(event.delta.name) + mask.end() } };
}
