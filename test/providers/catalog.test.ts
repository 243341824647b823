import { describe, expect, it } from "vitest";
import { keyFor, parseModel } from "../../src/providers/catalog.ts";
import { providerKeyNames } from "../../src/providers/key-names.ts";
import { endpoints } from "../../src/providers/endpoints.ts";
import type { ModelChoice } from "../../src/providers/catalog.ts";
import type { Json } from "../../src/model/json.ts";

function chosen(model: Json): ModelChoice {
  const choice = parseModel(model);
  if (!choice.ok) throw new Error(choice.error);
  return choice.value;
}

describe("a model", () => {
  it("is a provider and a name", () => {
    expect(chosen("openai/gpt-4o-mini")).toMatchObject({
      provider: "openai",
      name: "gpt-4o-mini",
      key: "OPENAI_API_KEY",
      protocol: "openai",
    });
    expect(chosen("scripted/replies/a.yaml")).toEqual({
      kind: "scripted",
      id: "scripted/replies/a.yaml",
      path: "replies/a.yaml",
    });
    expect(chosen({ id: "openai/gpt-4o-mini" })).toEqual(chosen("openai/gpt-4o-mini"));
  });

  it("on a server of the user's own keeps its whole name", () => {
    const model = { id: "openai/gpt-oss-20b", "base-url": "http://127.0.0.1:8000/v1", key: "LOCAL_KEY" };
    expect(chosen(model)).toMatchObject({
      provider: "custom",
      id: "openai/gpt-oss-20b",
      name: "openai/gpt-oss-20b",
      baseUrl: "http://127.0.0.1:8000/v1",
      key: "LOCAL_KEY",
      quirks: { maxTokens: "max_tokens", system: "system", jsonSchema: false },
    });
  });

  it.each([
    ["gpt-4o", "write `provider/name`"],
    ["openai/", "write `provider/name`"],
    ["opnai/gpt-4o", "did you mean `openai`?"],
    ["constructor/x", "known: scripted, openai"],
    ["groqq/llama", "did you mean `groq`?"],
    [{ id: "m", "base-url": "file:///etc/passwd" }, "not an http"],
    [{ id: "m", "base-url": "http://x", key: "sk-not-a-name" }, "never the key itself"],
    [{ id: "openai/m", key: "K" }, "needs `model.base-url`"],
    [{ "base-url": "http://x" }, "`model.id` is missing"],
    [7, "a model is"],
  ])("%j is refused", (model, words) => {
    const choice = parseModel(model);
    expect(choice.ok ? "" : choice.error).toContain(words);
  });
});

describe("a key", () => {
  const env = { OPENAI_API_KEY: "sk-ambient", LOCAL_KEY: " sk-local\n", EMPTY: "" };

  it("comes from the one variable the model names", () => {
    expect(keyFor(chosen("openai/m"), env)).toEqual({ ok: true, value: "sk-ambient" });
    expect(keyFor(chosen({ id: "m", "base-url": "http://x", key: "LOCAL_KEY" }), env)).toEqual({
      ok: true,
      value: "sk-local",
    });
  });

  it("of the environment is never sent to a server of the user's own", () => {
    expect(keyFor(chosen({ id: "openai/m", "base-url": "http://x" }), env)).toEqual({ ok: true, value: undefined });
  });

  it.each(["MISSING", "EMPTY", "constructor"])("that is not there is named: %s", (key) => {
    expect(keyFor(chosen({ id: "m", "base-url": "http://x", key }), env)).toEqual({ ok: false, error: key });
  });

  it("is in a variable that steps never see", () => {
    expect(providerKeyNames).toContain("OPENAI_API_KEY");
    expect([...providerKeyNames].sort()).toEqual(providerKeyNames);
    for (const { key = "OPENAI_API_KEY" } of Object.values(endpoints)) expect(providerKeyNames).toContain(key);
  });
});
