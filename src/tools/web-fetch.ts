import type { LookupAddress, LookupOptions } from "node:dns";
import { lookup } from "node:dns/promises";
import { isIP, type TcpSocketConnectOpts } from "node:net";
import type { Dispatcher } from "undici";
import type { JsonObject } from "../model/json.ts";
import type { Tool, ToolCall, ToolOutput } from "../model/ports.ts";
import { type Result, err, ok } from "../model/result.ts";
import { answer } from "./answer.ts";
import { textArgument } from "./arguments.ts";
import { htmlText } from "./html-text.ts";
import { shown } from "./workspace-path.ts";

/** Bytes of a page, unpacked. */
const largest = 5 * 1024 * 1024;
/** Milliseconds for one call, redirects included. */
const longestTime = 30_000;
const mostRedirects = 5;

export interface WebFetchOptions {
  /** Whether an address, of any version, may be connected to. */
  readonly reaches: (address: string) => boolean | Promise<boolean>;
}

/** Reads a page from the public network. */
export function webFetchTool(options: WebFetchOptions): Tool {
  return { ...spec, run: (args, call) => fetchPage(args, call, options) };
}

const spec: Omit<Tool, "run"> = {
  name: "WebFetch",
  description:
    "Reads a page by its http or https address and returns it as text, HTML without its tags. Only the public network is " +
    "reached. A redirect to another host is named and not followed.",
  readOnly: true,
  parameters: {
    type: "object",
    required: ["url"],
    additionalProperties: false,
    properties: {
      url: { type: "string", minLength: 1, maxLength: 4000, description: "The whole address" },
      prompt: {
        type: "string",
        maxLength: 10_000,
        description: "What you look for; the text comes whole all the same",
      },
    },
  },
  aliases: { names: ["webfetch", "web_fetch"], parameters: { link: "url", format: "prompt" } },
};

/** Addresses of the public network; not this machine, its networks, or what cloud machines ask about themselves. */
export async function isPublic(address: string): Promise<boolean> {
  const { default: ipaddr } = await import("ipaddr.js");
  if (!ipaddr.isValid(address)) return false;
  return ipaddr.process(address).range() === "unicast";
}

async function fetchPage(
  args: JsonObject,
  call: ToolCall,
  options: WebFetchOptions,
): Promise<Result<ToolOutput, string>> {
  const first = addressOf(textArgument(args, "url") ?? "");
  if (!first.ok) return first;
  const timer = AbortSignal.timeout(longestTime);
  const signal = AbortSignal.any([call.signal, timer]);
  const { Agent } = await import("undici");
  const dispatcher = new Agent({ connect: { lookup: checkedLookup(options) }, headersTimeout: longestTime });
  try {
    let url = first.value;
    for (let hop = 0; hop <= mostRedirects; hop++) {
      const page = await fetchOnce(url, { dispatcher, signal, ...options });
      if (!page.ok) return page;
      if (page.value.type === "text") return answer(page.value.text);
      const { target } = page.value;
      if (target.hostname !== url.hostname)
        return answer(
          `[${shown(url.href)} leads to another host: ${target.href} — call WebFetch with it if you want it]`,
        );
      url = target;
    }
    return err(`${shown(first.value.href)} redirects more than ${mostRedirects} times`);
  } catch (error) {
    if (call.signal.aborted) return err("cancelled");
    return err(timer.aborted ? `it took longer than ${longestTime / 1000} s` : reasonOf(error));
  } finally {
    await dispatcher.destroy();
  }
}

function addressOf(text: string, base?: URL): Result<URL, string> {
  if (!URL.canParse(text, base?.href)) return err(`${shown(text)} is not an address; write it whole, with https://`);
  const url = new URL(text, base?.href);
  if (url.protocol !== "http:" && url.protocol !== "https:") return err(`${shown(text)} is neither http nor https`);
  if (url.username !== "" || url.password !== "") return err("an address with a user name or password is not fetched");
  return ok(url);
}

type Lookup = NonNullable<TcpSocketConnectOpts["lookup"]>;

/** Resolves a name and gives only what may be reached; the connection goes to exactly that address. */
function checkedLookup({ reaches }: WebFetchOptions): Lookup {
  return (hostname, options, callback) => {
    void resolveChecked(hostname, options, reaches).then(
      (addresses) => answerLookup(addresses, options.all === true, callback),
      (error: unknown) => fail(error, callback),
    );
  };
}

async function resolveChecked(
  hostname: string,
  options: LookupOptions,
  reaches: WebFetchOptions["reaches"],
): Promise<LookupAddress[]> {
  const addresses = await lookup(hostname, { ...options, all: true });
  const refused = await refusedOf(addresses, reaches);
  if (refused === undefined && addresses.length > 0) return addresses;
  throw new Error(`${hostname} is ${refused ?? "nowhere"}, which is not on the public network`);
}

type Callback = Parameters<Lookup>[2];

function answerLookup(addresses: LookupAddress[], all: boolean, callback: Callback): void {
  const [one] = addresses;
  if (all) callback(null, addresses);
  else callback(null, one?.address ?? "", one?.family);
}

function fail(error: unknown, callback: Callback): void {
  callback(error instanceof Error ? error : new Error(String(error)), "", 0);
}

async function refusedOf(
  addresses: readonly { readonly address: string }[],
  reaches: WebFetchOptions["reaches"],
): Promise<string | undefined> {
  for (const { address } of addresses) if (!(await reaches(address))) return address;
  return undefined;
}

interface Fetching extends WebFetchOptions {
  readonly dispatcher: Dispatcher;
  readonly signal: AbortSignal;
}

type Page = { readonly type: "text"; readonly text: string } | { readonly type: "redirect"; readonly target: URL };

async function fetchOnce(url: URL, { dispatcher, signal, reaches }: Fetching): Promise<Result<Page, string>> {
  // A literal address is connected to without being looked up.
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  if (isIP(host) !== 0 && !(await reaches(host))) return err(`${host} is not on the public network`);
  const { fetch } = await import("undici");
  const headers = { accept: "text/html, text/*, application/json, application/xml", "user-agent": "flow" };
  const response = await fetch(url, { dispatcher, signal, redirect: "manual", headers });
  const location = response.headers.get("location");
  if (response.status >= 300 && response.status < 400 && location !== null) {
    await response.body?.cancel();
    const target = addressOf(location, url);
    return target.ok ? ok({ type: "redirect", target: target.value }) : target;
  }
  const kind = (response.headers.get("content-type") ?? "text/plain").toLowerCase();
  if (!/^(?:text\/|application\/(?:[\w.+-]*json|[\w.+-]*xml|javascript|yaml|toml))/.test(kind)) {
    await response.body?.cancel();
    return err(`${shown(url.href)} is ${kind.split(";")[0] ?? "no text"}; only text is read`);
  }
  const { bytes, whole } = await readBody(response.body);
  const raw = decoded(bytes, kind);
  const text = /^(?:text\/html|application\/xhtml)/.test(kind) ? htmlText(raw) : raw;
  if (!response.ok) return err(`${shown(url.href)} answered ${response.status}: ${text.slice(0, 2000)}`);
  return ok({ type: "text", text: whole ? text : `${text}\n[cut after ${largest / 1024 / 1024} MiB]` });
}

async function readBody(
  body: AsyncIterable<Uint8Array> | null,
): Promise<{ readonly bytes: Buffer; readonly whole: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    const room = largest - size;
    chunks.push(chunk.subarray(0, room));
    size += chunk.length;
    if (size > largest) return { bytes: Buffer.concat(chunks), whole: false };
  }
  return { bytes: Buffer.concat(chunks), whole: true };
}

/** By the charset a page declares, where this Node knows it. */
function decoded(bytes: Buffer, kind: string): string {
  const charset = /charset="?([\w-]+)/.exec(kind)?.[1] ?? "utf-8";
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return bytes.toString("utf8");
  }
}

/** The innermost reason: `fetch` says only that it failed. */
function reasonOf(error: unknown): string {
  let reason = error;
  while (reason instanceof Error && reason.cause instanceof Error) reason = reason.cause;
  return reason instanceof Error ? reason.message : String(reason);
}
