import type { Json } from "../model/json.ts";
import type { Failure } from "../model/outcome.ts";
import type { Execute, ModelRequest } from "../model/ports.ts";
import type { StreamFilter } from "../process/capture.ts";
import { namedKeys, providerKeyNames } from "../providers/key-names.ts";
import { maskData, maskEvent } from "../runlog/mask-event.ts";
import { createMask, type Mask, type StreamMask } from "../runlog/redact.ts";
import { serverSecrets } from "./plan-servers.ts";
import type { StartOptions } from "./run-options.ts";

/** What must never be written, of one run. */
export interface Masking {
  readonly mask: Mask;
  readonly hasSecrets: boolean;
  /** Names of variables that hold models' keys. */
  readonly keys: readonly string[];
}

export type Maskable = Pick<StartOptions, "plan" | "inputs" | "secrets" | "env" | "keys">;

export function createMasking(options: Maskable): Masking {
  const keys = keyNames(options);
  const toMask = secretsToMask(options, [...keys, ...serverSecrets(options.plan)]);
  return { mask: createMask(toMask), hasSecrets: toMask.length > 0, keys };
}

/** The providers' keys, and those that models of this run name. */
function keyNames({ plan, inputs, keys }: Maskable): string[] {
  return [...providerKeyNames, ...keys, ...namedKeys([plan as unknown as Json, inputs])];
}

/** Declared secrets and keys, which nothing should ever print. */
function secretsToMask(options: Maskable, names: readonly string[]): { name: string; value: string }[] {
  const { secrets, env } = options;
  const keys = names.flatMap((name) => (Object.hasOwn(env, name) ? [{ name, value: env[name] ?? "" }] : []));
  return [
    ...Object.entries(secrets).map(([name, value]) => ({ name, value })),
    ...keys.filter(({ value }) => value !== ""),
  ];
}

/** A request as the log would hold its messages. */
export function maskedRequest(request: ModelRequest, { mask }: Mask): ModelRequest {
  return maskEvent(request, mask) as ModelRequest;
}

/** A failure as it may leave the run by another way than its log. */
export function maskedFailure(error: Failure, { mask }: Mask): Failure {
  const cause = error.cause !== undefined && { cause: mask(error.cause) };
  return { ...error, message: mask(error.message), ...cause };
}

/** The text mask as a filter of bytes; a character cut in two waits for its other half. */
export function byteFilter(mask: StreamMask): StreamFilter {
  const decoder = new TextDecoder();
  return {
    write: (chunk) => Buffer.from(mask.push(decoder.decode(chunk, { stream: true }))),
    end: () => Buffer.from(mask.push(decoder.decode()) + mask.end()),
  };
}

/** Outputs are masked where they are captured: a later step sees `***` now and after a resume alike. */
export function masked(execute: Execute, mask: Mask): Execute {
  return async (attempt) => {
    const result = await execute(attempt);
    if (result.outcome === "success") {
      return {
        outcome: "success",
        result: maskData(result.result, mask.mask),
        outputs: maskData(result.outputs, mask.mask),
      };
    }
    const outputs = result.outputs === undefined ? {} : { outputs: maskData(result.outputs, mask.mask) };
    if (result.outcome === "cancelled") return { outcome: "cancelled", ...outputs };
    return { outcome: "failure", error: maskedFailure(result.error, mask), ...outputs };
  };
}
