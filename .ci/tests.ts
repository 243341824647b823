/**
 * The suite, as the README says to run it. `node .ci/tests.ts FOLDER`, from the root of a clone: prints what failed
 * with all that it said, leaves `passed failed skipped` in `FOLDER/counts`, and ends with 1 when a test failed.
 *
 * The tests run thousands of processes on few cores, and some are about who comes first. Files with a failure are run
 * once more, by themselves: what fails again has failed, what does not is told as unsteady, with what it had said.
 */
import { spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";

/** What vitest writes of a file; `message` is why it could not be loaded. */
interface TestFile {
  readonly name: string;
  readonly status: string;
  readonly message: string;
  readonly assertionResults: readonly { status: string; fullName: string; failureMessages: readonly string[] }[];
}

interface Report {
  readonly numPassedTests: number;
  readonly numPendingTests: number;
  readonly testResults: readonly TestFile[];
}

interface Failure {
  readonly name: string;
  readonly said: string;
}

interface Tried {
  readonly isWell: boolean;
  readonly passed: number;
  readonly skipped: number;
  readonly files: readonly string[];
  readonly failures: readonly Failure[];
}

/** More than these are no accident. */
const mostFilesAgain = 5;
const [folder = "."] = process.argv.slice(2);

const first = tryTests("first", []);
const again = first.files.length > 0 && first.files.length <= mostFilesAgain ? tryTests("again", first.files) : first;
const failures = again.failures;
for (const { name, said } of first.failures) {
  if (failures.every((failure) => failure.name !== name)) tell("unsteady", name, said);
}
for (const { name, said } of failures) tell("failed", name, said);

const passed = again === first ? first.passed : first.passed + first.failures.length - failures.length;
writeFileSync(join(folder, "counts"), `${passed} ${failures.length} ${first.skipped}\n`);
console.log(`${passed} tests passed, ${failures.length} failed, ${first.skipped} skipped`);
process.exitCode = again.isWell ? 0 : 1;

function tryTests(name: string, only: readonly string[]): Tried {
  const report = join(folder, `${name}.json`);
  const log = join(folder, `${name}.log`);
  const output = openSync(log, "w");
  const args = ["test", "--", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`, ...only];
  const isWell = spawnSync("npm", args, { stdio: ["ignore", output, output] }).status === 0;
  closeSync(output);
  const { numPassedTests, numPendingTests, testResults } = existsSync(report)
    ? (JSON.parse(readFileSync(report, "utf8")) as Report)
    : { numPassedTests: 0, numPendingTests: 0, testResults: [] };
  const broken = testResults.filter(({ status }) => status === "failed");
  const found = broken.flatMap(failuresOf);
  const printed = readFileSync(log, "utf8");
  const end = printed.split("\n").slice(-80).join("\n");
  // What no test has caught fails the suite as well, and belongs to no file that could be run again.
  const isAnyones = printed.includes("Unhandled Error");
  return {
    isWell,
    passed: numPassedTests,
    skipped: numPendingTests,
    files: isAnyones ? [] : broken.map((file) => relative(process.cwd(), file.name)),
    failures: isWell || (found.length > 0 && !isAnyones) ? found : [...found, { name: args.join(" "), said: end }],
  };
}

/** Of a file that could not be loaded there is one failure: the file. */
function failuresOf({ name, message, assertionResults }: TestFile): Failure[] {
  const file = relative(process.cwd(), name);
  const failed = assertionResults.filter(({ status }) => status === "failed");
  if (failed.length === 0) return [{ name: file, said: message }];
  return failed.map((test) => ({ name: `${file} ${test.fullName}`, said: test.failureMessages.join("\n") }));
}

function tell(how: string, name: string, said: string): void {
  console.log(`${how}: ${name}\n${said.slice(0, 6000).replaceAll(/^/gm, "    ")}`);
}
