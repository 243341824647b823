import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Place } from "./flow.ts";

let place: Place;
beforeEach(() => {
  place = new Place({ "it.yaml": 'name: it\nsteps: { a: { run: ["true"] } }\n', "bad.yaml": "name: bad\n" });
});
afterEach(() => place.remove());

const folder = (): string => join(place.folder, "cache", "flow");
const files = (): string[] =>
  existsSync(folder()) ? readdirSync(folder()).filter((name) => name.endsWith(".code")) : [];

async function validate(env: Readonly<Record<string, string>> = {}): Promise<void> {
  const { code, stdout, stderr } = await place.flow(["validate", "it.yaml"], {
    env: {
      NODE_COMPILE_CACHE: "",
      NODE_DISABLE_COMPILE_CACHE: "",
      XDG_CACHE_HOME: join(place.folder, "cache"),
      ...env,
    },
  });
  expect([code, stdout, stderr]).toEqual([0, "valid it.yaml (1 step)\n", ""]);
}

describe("the code that V8 made of the command", () => {
  it("is kept for the user alone, one file a command, and used the next time", async () => {
    await validate();
    const [name = ""] = files();
    expect(name).toMatch(/^validate-[0-9a-f]{8}\.code$/);
    const kept = statSync(join(folder(), name));
    expect([kept.mode & 0o777, statSync(folder()).mode & 0o777]).toEqual([0o600, 0o700]);
    await validate();
    expect(files()).toEqual([name]);
    expect(statSync(join(folder(), name)).ino).toBe(kept.ino);
  });

  it("is made again when the file is cut short, empty, or damaged anywhere", async () => {
    await validate();
    const file = join(folder(), files()[0] ?? "");
    const whole = readFileSync(file);
    const flipped = (at: number): Buffer => {
      const bytes = Buffer.from(whole);
      for (let place = at; place < at + 16; place++) bytes[place] = 255 - (bytes[place] ?? 0);
      return bytes;
    };
    const middles = [0.3, 0.5, 0.7].map((part) => flipped(Math.floor(whole.length * part)));
    for (const damaged of [whole.subarray(0, whole.length / 2), Buffer.alloc(0), Buffer.from("x"), ...middles]) {
      writeFileSync(file, damaged);
      await validate();
      expect(statSync(file).size).toBeGreaterThan(whole.length * 0.9);
    }
  });

  it("is not needed: a folder that takes no file changes nothing", async () => {
    writeFileSync(join(place.folder, "taken"), "");
    await validate({ XDG_CACHE_HOME: join(place.folder, "taken") });
    chmodSync(place.folder, 0o500);
    await validate();
    chmodSync(place.folder, 0o700);
  });

  it("is neither read nor kept where Node's own switch says so", async () => {
    await validate({ NODE_DISABLE_COMPILE_CACHE: "1" });
    expect(files()).toEqual([]);
  });

  it("is not kept of a command that failed, which ran little of it", async () => {
    const { code } = await place.flow(["validate", "bad.yaml"], {
      env: { NODE_COMPILE_CACHE: "", NODE_DISABLE_COMPILE_CACHE: "", XDG_CACHE_HOME: join(place.folder, "cache") },
    });
    expect([code, files()]).toEqual([2, []]);
  });
});
