// Reads { items, failed } of the step `audit` from stdin and prints one report.
import { readFileSync } from "node:fs";
import { basename } from "node:path";

const { items, failed } = JSON.parse(readFileSync(0, "utf8"));
const audited = items.filter((item) => item !== null);
const findings = audited.flatMap(({ page, findings }) => findings.map((finding) => ({ page, ...finding })));

const lines = [`# Findings: ${findings.length} (${audited.length} of ${items.length} pages audited)`, ""];
for (const { page, kind, claim, fact } of findings) lines.push(`- ${basename(page)}, ${kind}: ${claim}. ${fact}.`);
if (failed.length > 0) lines.push("", "Not audited:", "");
for (const { item, error } of failed) lines.push(`- ${basename(item)} (${error.kind}: ${error.message})`);
console.log(lines.join("\n"));
