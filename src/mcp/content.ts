import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/client";
import { isJsonObject, type Json } from "../model/json.ts";
import type { Block } from "../model/message.ts";
import type { ToolOutput } from "../model/ports.ts";
import { err, ok, type Result } from "../model/result.ts";

/** Characters of base64 that a model's provider takes as one image. */
const largestImage = 5 * 1024 * 1024;
const mostImages = 20;
const imageTypes: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** What a call gave, in our blocks; what a model cannot be shown is said in words. `isError` is an error with its text. */
export function outputOf(result: CallToolResult): Result<ToolOutput, string> {
  let images = 0;
  const blocks = result.content.map((block): Block => {
    if (block.type === "image" && isShown(block) && ++images <= mostImages)
      return { type: "image", mediaType: block.mimeType, data: block.data };
    return { type: "text", text: textOf(block) };
  });
  const structured = isJsonObject(result.structuredContent) ? result.structuredContent : undefined;
  const said = blocks.some((block) => block.type !== "text" || block.text !== "");
  const shown: Block[] =
    said || structured === undefined ? blocks : [{ type: "text", text: JSON.stringify(structured) }];
  if (result.isError === true) return err(textsOf(shown) || "the tool says that it failed, and nothing else");
  return ok({ blocks: shown, ...(structured && { structured: plain(structured) }) });
}

function isShown({ mimeType, data }: Extract<ContentBlock, { type: "image" }>): boolean {
  return imageTypes.has(mimeType) && data.length <= largestImage && /^[A-Za-z0-9+/=\s]*$/.test(data);
}

function textOf(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
    case "audio":
      return `[${block.type}, ${block.mimeType}, ${block.data.length} characters of base64: left out]`;
    case "resource_link":
      return `[${block.name}: ${block.uri}]${block.description === undefined ? "" : ` ${block.description}`}`;
    case "resource": {
      const { resource } = block;
      return "text" in resource ? `[${resource.uri}]\n${resource.text}` : `[${resource.uri}: not text, left out]`;
    }
    default:
      return `[${JSON.stringify(block satisfies never).slice(0, 200)}: not known here]`;
  }
}

function textsOf(blocks: readonly Block[]): string {
  return blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

/** A value of the wire as one of ours, own keys only. */
function plain(value: object): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}
