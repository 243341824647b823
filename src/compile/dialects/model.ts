import type { MapEntry } from "../../source/document.ts";
import { asText } from "../read/nodes.ts";
import { type Draft, ignore, nodeOf, putAs } from "./draft.ts";

/** Words for the model of whoever runs the agent. */
const inherited: ReadonlySet<string> = new Set(["inherit", "default"]);

/** The model of a foreign agent; one that flow cannot ask leaves the choice to the step and the workflow. */
export async function putModel(draft: Draft, theirs: MapEntry, provider?: string): Promise<void> {
  const text = asText(theirs.value);
  const name = text?.value.trim() ?? "";
  if (!text || name === "") return ignore(draft, theirs, "it names no model");
  if (inherited.has(name)) {
    draft.fields.push({
      key: theirs.key,
      at: theirs.keyAt,
      fate: "honoured",
      note: "the model of the step or the workflow",
    });
    return undefined;
  }
  const model = await draft.vocabulary.modelOf(name, provider);
  if (model !== undefined)
    return putAs(draft, theirs, {
      key: "model",
      value: nodeOf(model, text.at),
      note: model === name ? undefined : model,
    });
  return ignore(
    draft,
    theirs,
    `flow knows no model \`${name}\`, so the step's or the workflow's is asked; \`model-aliases: { ${JSON.stringify(name)}: provider/model }\` in flow.config.yaml gives it a meaning`,
  );
}
