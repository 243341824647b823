import { entry, type SourceNode } from "../../source/document.ts";
import type { ServerShape } from "../server-shape.ts";
import type { Place, Use } from "../shape.ts";
import { readDuration } from "./duration.ts";
import { type Reader, readTemplate, refuseExpressions } from "./expression.ts";
import { asMap, entriesOf } from "./nodes.ts";
import { checkCommand, checkKind } from "./server-command.ts";

/** What may hold no expression: which program is started, and how, is fixed when the file is read. */
const fixed = ["command", "type", "required", "timeout", "cwd", "sandbox"];

interface ServersSource extends Pick<ServerShape, "file"> {
  readonly place: Place;
  readonly expands?: boolean;
  readonly base?: ServerShape["base"];
}

/** The MCP servers a workflow, an agent or a configuration defines. Those that are no mapping have been reported. */
export function readServers(
  reader: Reader,
  node: SourceNode | undefined,
  { file, place, expands = false, base = "cwd" }: ServersSource,
): ReadonlyMap<string, ServerShape> {
  const servers = new Map<string, ServerShape>();
  for (const { key, keyAt, value } of entriesOf(node)) {
    const map = asMap(value);
    if (!/^[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*$/.test(key) || key.length > 40) {
      const message = `a server cannot be named ${JSON.stringify(key.slice(0, 100))}: its tools are called \`mcp__server__tool\``;
      const suggestion = "use letters, digits, `-` and single `_` between them, at most 40";
      reader.report("FLOW3001", keyAt, message, { suggestion });
    }
    if (!map) continue;
    const refused = fixed.filter((setting) =>
      refuseExpressions(reader, entry(map, setting)?.value, `a server's \`${setting}\``),
    );
    const timeout = entry(map, "timeout")?.value;
    if (timeout) readDuration(timeout, reader.report);
    if (!refused.includes("command")) checkCommand(map, reader.report);
    const entries = map.entries.filter((setting) => !refused.includes(setting.key));
    checkKind(map, reader.report, expands ? "warning" : "error");
    const before = reader.uses.length;
    const definition = readTemplate(reader, { kind: "map", at: map.at, entries }, place);
    const secrets = secretsIn(reader.uses.slice(before));
    servers.set(key, { name: key, file, definition, expands, base, secrets });
  }
  return servers;
}

function secretsIn(uses: readonly Use[]): readonly string[] {
  const names = uses.flatMap(({ references }) =>
    references.flatMap(({ context, path: [name] }) =>
      context === "secrets" && name?.kind === "name" ? [name.name] : [],
    ),
  );
  return [...new Set(names)];
}
