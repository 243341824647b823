import { setTimeout as delay } from "node:timers/promises";

/** Asks, quickly at first, until `holds` or `ms` have passed; says which. */
export async function until(holds: () => boolean | Promise<boolean>, ms: number): Promise<boolean> {
  const deadline = performance.now() + ms;
  for (let pause = 2; !(await holds()); pause = Math.min(pause * 1.5, 50)) {
    const left = deadline - performance.now();
    if (left <= 0) return false;
    await delay(Math.min(pause, left));
  }
  return true;
}

/** Whether `promise` settles within `ms`. */
export async function within(promise: Promise<void>, ms: number): Promise<boolean> {
  const late = Promise.withResolvers<false>();
  const timer = setTimeout(() => late.resolve(false), ms);
  const inTime = await Promise.race([promise.then(() => true), late.promise]);
  clearTimeout(timer);
  return inTime;
}
