/** An MCP server that says in every way it has what stands in the file `forms`, and writes down its environment. */
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const forms = readFileSync("forms", "utf8");
writeFileSync("server-env.json", JSON.stringify(process.env));
process.stderr.write(forms);

const tool = { name: "tell", description: forms, inputSchema: { type: "object" } };
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "leaky", version: "1" },
  }),
  "tools/list": () => ({ tools: [tool, { ...tool, name: "fail" }, { ...tool, name: "end" }] }),
  "tools/call": ({ name }) => {
    if (name === "end") process.exit(1);
    return { content: [{ type: "text", text: forms }], isError: name === "fail" };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  const result = answers[method]?.(params);
  if (id !== undefined) process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
}
