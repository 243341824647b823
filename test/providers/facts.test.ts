import { describe, expect, it } from "vitest";
import { builtInCatalog, likelyModel, parseModel, type ServerModel } from "../../src/providers/catalog.ts";
import { factsOf } from "../../src/providers/facts.ts";
import { serverModel } from "./server-options.ts";

const million = { input: 1_000_000, output: 1_000_000, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

describe("what is known of a model", () => {
  it.each([
    ["deepseek/deepseek-chat", 0.42],
    ["anthropic/claude-sonnet-5", 12],
    ["zhipu/glm-4.7", 2.8],
    ["qwen/qwen3-max", 7.2],
  ])("%s costs %d dollars for a million tokens each way by our table", async (id, cost) => {
    expect((await factsOf(serverModel(id))).cost(million)).toBeCloseTo(cost, 6);
  });

  it("comes from the price package for models that are not in the table", async () => {
    const facts = await factsOf(serverModel("openai/gpt-4.1"));
    expect(facts.cost(million)).toBeGreaterThan(0);
    expect(facts.window).toBeGreaterThan(100_000);
  });

  it.each(["openai/gpt-99-imaginary", "qwen/unheard-of", "openrouter/nobody/x"])(
    "is no price for %s, and never 0",
    async (id) => {
      expect((await factsOf(serverModel(id))).cost(million)).toBeNull();
    },
  );

  it.each(["ollama/llama3", "vllm/x", "lmstudio/x"])("is that %s runs at home and costs nothing", async (id) => {
    expect((await factsOf(serverModel(id))).cost(million)).toBe(0);
  });

  it("is what the workflow says before anything else", async () => {
    const own = parseModel({ id: "m", "base-url": "http://x", price: { input: 1, output: 2, "cache-read": 0.5 } });
    const table = parseModel({ id: "openai/gpt-4o", price: { input: 1, output: 2 } });
    if (!own.ok || !table.ok) throw new Error("a model was refused");
    expect((await factsOf(own.value as ServerModel)).cost({ ...million, cacheRead: 2_000_000 })).toBe(4);
    expect((await factsOf(table.value as ServerModel)).cost(million)).toBe(3);
    const nobody = parseModel({ id: "m", "base-url": "http://x" });
    expect((await factsOf((nobody.ok && nobody.value) as ServerModel)).cost(million)).toBeNull();
  });

  it("counts parts of the cache apart, and long requests double where they are", async () => {
    const sonnet = await factsOf(serverModel("anthropic/claude-sonnet-5"));
    expect(sonnet.cost({ ...million, input: 0, output: 0, cacheRead: 1_000_000 })).toBeCloseTo(0.2, 6);
    expect(sonnet.cost({ ...million, input: 0, output: 0, cacheWrite: 1_000_000 })).toBeCloseTo(2.5, 6);
    const gpt = await factsOf(serverModel("openai/gpt-5.4"));
    expect(gpt.cost({ ...million, input: 272_000, output: 0 })).toBeCloseTo(0.68, 6);
    expect(gpt.cost({ ...million, input: 300_000, output: 0 })).toBeCloseTo(1.5, 6);
  });

  it("has a row for every model under a provider that exists", () => {
    const unknown = Object.keys(builtInCatalog.models).filter((id) => !parseModel(id).ok);
    expect(unknown).toEqual([]);
  });
});

describe("the model that was meant", () => {
  it.each([
    ["anthropic/claude-sonet-5", "anthropic/claude-sonnet-5"],
    ["openai/gtp-4o-mini", "openai/gpt-4o-mini"],
    ["anthropic/claude-sonnet-6", undefined],
    ["openai/gpt-4o", undefined],
    ["openai/o9-new", undefined],
  ])("by %s is %s", (id, expected) => {
    expect(likelyModel(id)).toBe(expected);
  });
});
