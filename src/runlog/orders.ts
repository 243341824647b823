import { randomUUID } from "node:crypto";
import {
  existsSync,
  type FSWatcher,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  watch,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { isJsonObject, type Json } from "../model/json.ts";

/** What another process asks of a run that goes on: to end, or to end one of its agent runs. */
export type Order =
  | { readonly cancel: "run"; readonly now: boolean }
  | { readonly cancel: "agent"; readonly agent: string; readonly children: boolean };

/** Not every file system tells what happened on it, another machine's least of all. */
const lookEvery = 1000;

/**
 * Obeys the orders that are put into the run's folder, each once, until the returned function is called. Those that were
 * meant for somebody who died here are forgotten. A folder that cannot be written has no orders.
 */
export function takeOrders(folder: string, obey: (order: Order) => void): () => void {
  const inbox = inboxOf(folder);
  let watcher: FSWatcher | undefined;
  try {
    rmSync(inbox, { recursive: true, force: true });
    mkdirSync(inbox, { mode: 0o700 });
    watcher = watch(inbox, { persistent: false }, () => look());
    watcher.on("error", () => watcher?.close());
  } catch {
    // No room for another watch: it is looked for.
  }
  const look = (): void => ordersIn(inbox).forEach(obey);
  const timer = setInterval(look, lookEvery).unref();
  return () => {
    clearInterval(timer);
    watcher?.close();
    try {
      rmSync(inbox, { recursive: true, force: true });
    } catch {
      // A disk that cannot be written any more, or an order that is just coming: it is nobody's, and the run has ended.
    }
  };
}

export interface GivenOrder {
  isTaken(): boolean;
  /** Nobody will obey it any more, unless it was `taken` before. */
  takeBack(): "taken" | "back";
}

/** Undefined where nobody takes orders. */
export function giveOrder(folder: string, order: Order): GivenOrder | undefined {
  const id = randomUUID();
  const file = path.join(inboxOf(folder), `${id}.json`);
  const draft = path.join(inboxOf(folder), id);
  try {
    writeFileSync(draft, JSON.stringify(order), { mode: 0o600, flag: "wx" });
    renameSync(draft, file);
  } catch {
    return undefined;
  }
  return { isTaken: () => !existsSync(file), takeBack: () => takeBack(file) };
}

function takeBack(file: string): "taken" | "back" {
  try {
    rmSync(file);
    return "back";
  } catch {
    return "taken";
  }
}

function inboxOf(folder: string): string {
  return path.join(folder, "orders");
}

function ordersIn(inbox: string): Order[] {
  let names: string[];
  try {
    names = readdirSync(inbox);
  } catch {
    return [];
  }
  return names.filter((name) => name.endsWith(".json")).flatMap((name) => takeOut(path.join(inbox, name)) ?? []);
}

function takeOut(file: string): Order | undefined {
  try {
    const text = readFileSync(file, "utf8");
    // Whoever removes it has it: it may have been taken back meanwhile.
    rmSync(file);
    return orderIn(JSON.parse(text) as Json);
  } catch {
    return undefined;
  }
}

function orderIn(value: Json): Order | undefined {
  if (!isJsonObject(value)) return undefined;
  const { cancel, now, agent, children } = value;
  if (cancel === "run") return { cancel, now: now === true };
  if (cancel === "agent" && typeof agent === "string") return { cancel, agent, children: children !== false };
  return undefined;
}
