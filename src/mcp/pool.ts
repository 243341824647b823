import { canonicalJson, type Json } from "../model/json.ts";
import type { Result } from "../model/result.ts";
import { type Connection, connect, type ConnectOptions } from "./connect.ts";
import type { ServerSpec } from "./server.ts";

type Connecting = Promise<Result<Connection, string>>;
type How = Pick<ConnectOptions, "note" | "signal">;

/** The servers of one run. Those that are equal are started once, when the first step needs one, and end with the run. */
export class ServerPool {
  readonly #options: Omit<ConnectOptions, keyof How>;
  readonly #shared = new Map<string, Connecting>();
  readonly #all = new Set<Connection>();

  constructor(options: Omit<ConnectOptions, keyof How>) {
    this.#options = options;
  }

  /**
   * Of those that are shared. Who comes while it is being started gets what comes of that; one that failed, or that is
   * gone, is started again for who comes later.
   */
  async share(spec: ServerSpec, how: Pick<How, "note">): Connecting {
    const key = canonicalJson(spec as unknown as Json);
    for (;;) {
      const connecting = this.#shared.get(key) ?? this.#start(key, spec, how);
      const found = await connecting;
      if (!found.ok || !found.value.isOver) return found;
      this.#forget(key, connecting);
    }
  }

  /** One of its own for whoever asks, who ends it. */
  async own(spec: ServerSpec, how: How): Connecting {
    const connected = await connect(spec, { ...this.#options, ...how });
    if (connected.ok) this.#all.add(connected.value);
    return connected;
  }

  async end(connection: Connection): Promise<void> {
    this.#all.delete(connection);
    await connection.close();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map((connection) => this.end(connection)));
  }

  #start(key: string, spec: ServerSpec, how: Pick<How, "note">): Connecting {
    const connecting = this.own(spec, how);
    this.#shared.set(key, connecting);
    void connecting.then(({ ok }) => {
      if (!ok) this.#forget(key, connecting);
    });
    return connecting;
  }

  #forget(key: string, connecting: Connecting): void {
    if (this.#shared.get(key) === connecting) this.#shared.delete(key);
  }
}
