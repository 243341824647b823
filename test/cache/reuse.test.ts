import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { Folder } from "./running.ts";

const folders: Folder[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) folder.remove();
});

function folderWith(text: string, files: Readonly<Record<string, string>> = {}): Folder {
  const folder = new Folder({ "main.yaml": text, ...files });
  folders.push(folder);
  return folder;
}

function entries(folder: Folder): string[] {
  const place = join(folder.path, ".flow/cache");
  return readdirSync(place)
    .filter((name) => name.endsWith(".json"))
    .map((name) => join(place, name));
}

describe("a cached step", () => {
  test("does not run again, gives what it gave, and names the run that executed it", async () => {
    const folder = folderWith(`
steps:
  a:
    run: |
      echo ran >> count
      date +%N
      echo "n=$(date +%N)" >> "$FLOW_OUTPUT"
    cache: true
  b: { run: 'printf %s "$N"', env: { N: "\${{ steps.a.outputs.n }}" } }
outputs: { n: "\${{ steps.a.outputs.n }}", out: "\${{ steps.a.outputs.stdout }}", seen: "\${{ steps.b.outputs.stdout }}" }
`);
    const first = await folder.run();
    const second = await folder.run();
    expect(second.outputs).toEqual(first.outputs);
    expect(second.outputs["seen"]).toBe(first.outputs["n"]);
    expect(folder.read("count")).toBe("ran\n");
    const [started] = first.events;
    const hit = second.events.find((event) => event.type === "step.cached");
    expect(hit).toMatchObject({ step: "a", run: started?.type === "run.started" && started.run });
    expect(second.events.filter((event) => event.type === "step.attempt.started").map(({ step }) => step)).toEqual([
      "b",
    ]);
  });

  test("is off without the key, and with `cache: false`", async () => {
    const folder = folderWith("steps: { a: { run: echo ran >> a }, b: { run: echo ran >> b, cache: false } }\n");
    for (let time = 0; time < 2; time++) expect((await folder.run()).missed).toEqual([]);
    expect([folder.read("a"), folder.read("b")]).toEqual(["ran\nran\n", "ran\nran\n"]);
    expect(readdirSync(join(folder.path, ".flow"))).not.toContain("cache");
  });

  test("stands after `if`: what is not to run is skipped", async () => {
    const folder = folderWith(
      "inputs: { on: { type: boolean } }\nsteps: { a: { if: inputs.on, run: echo, cache: true } }\n",
    );
    await folder.run({ inputs: { on: true } });
    expect((await folder.run({ inputs: { on: false } })).cached).toEqual([]);
    expect((await folder.run({ inputs: { on: true } })).cached).toEqual(["a"]);
  });

  test("stands inside of `foreach`: each item by itself, wherever in the list it is", async () => {
    const folder = folderWith(`
inputs: { list: { type: array } }
steps:
  a: { foreach: "\${{ inputs.list }}", run: 'echo "$I" >> count; echo "<$I>"', env: { I: "\${{ item }}" }, cache: true }
outputs: { all: "\${{ steps.a.outputs.items.*.stdout }}" }
`);
    await folder.run({ inputs: { list: ["x", "y"] } });
    const second = await folder.run({ inputs: { list: ["new", "y", "x"] } });
    expect(second.cached.toSorted()).toEqual(["a[1]", "a[2]"]);
    expect(second.outputs["all"]).toEqual(["<new>", "<y>", "<x>"]);
    expect(folder.read("count").split("\n").toSorted()).toEqual(["", "new", "x", "y"]);
  });

  test("stands outside of `repeat`: one hit for all iterations", async () => {
    const folder = folderWith(`
steps:
  a:
    repeat: { until: iteration == 3, max: 5 }
    run: echo "$I" | tee -a count
    env: { I: "\${{ iteration }} \${{ previous.stdout }}" }
    cache: true
outputs: { last: "\${{ steps.a.outputs.stdout }}" }
`);
    const first = await folder.run();
    const second = await folder.run();
    expect([second.cached, second.outputs]).toEqual([["a"], first.outputs]);
    expect(first.outputs["last"]).toBe("3 2 1 ");
    expect(folder.read("count").split("\n")).toHaveLength(4);
    expect(second.events.filter((event) => event.type === "step.started")).toHaveLength(1);
  });

  test("stands outside of `retry`: what succeeded at last is kept", async () => {
    const folder = folderWith(
      "steps: { a: { retry: { max: 2, backoff: 1ms }, run: 'echo ran >> count; [ $(wc -l < count) -ge 2 ]', cache: true } }\n",
    );
    expect((await folder.run()).exitCode).toBe(0);
    expect((await folder.run()).cached).toEqual(["a"]);
    expect(folder.read("count")).toBe("ran\nran\n");
  });

  test.each(["", ", continue-on-error: true"])("keeps no failure%s", async (more) => {
    const folder = folderWith(`steps: { a: { run: echo ran >> count; exit 3, cache: true${more} } }\n`);
    await folder.run();
    expect((await folder.run()).missed).toEqual(["a | first"]);
    expect(folder.read("count")).toBe("ran\nran\n");
  });

  test("that is a group gives its outputs, and no step in it runs", async () => {
    const folder = folderWith(`
steps:
  a:
    cache: true
    steps:
      b: { run: echo ran | tee -a count }
      c: { foreach: [1, 2], run: 'echo "$B" >> count', env: { B: "\${{ steps.b.outputs.stdout }}" } }
    outputs: { o: "\${{ steps.b.outputs.stdout }}" }
outputs: { o: "\${{ steps.a.outputs.o }}" }
`);
    await folder.run();
    const second = await folder.run();
    expect([second.cached, second.outputs, folder.read("count")]).toEqual([["a"], { o: "ran" }, "ran\nran\nran\n"]);
  });

  test("that is a sub-workflow does not enter it", async () => {
    const folder = folderWith(
      "steps: { a: { workflow: sub.yaml, cache: true } }\noutputs: { o: '${{ steps.a.outputs.o }}' }\n",
      {
        "sub.yaml": "steps: { b: { run: echo ran | tee -a count } }\noutputs: { o: '${{ steps.b.outputs.stdout }}' }\n",
      },
    );
    await folder.run();
    expect(await folder.run()).toMatchObject({ cached: ["a"], outputs: { o: "ran" } });
    expect(folder.read("count")).toBe("ran\n");
  });

  test("that is an agent asks no model again, not even when its script is replaced by none", async () => {
    const folder = folderWith(
      "model: scripted/r.yaml\nsteps: { a: { agent: { name: x, instructions: You., tools: [] }, prompt: hi, cache: true } }\noutputs: { t: '${{ steps.a.outputs.text }}' }\n",
      { "r.yaml": "agents: { x: [{ text: hello }] }\n", "other.yaml": "agents: { x: [{ text: other }] }\n" },
    );
    await folder.run();
    const second = await folder.run();
    expect([second.cached, second.outputs]).toEqual([["a"], { t: "hello" }]);
    expect(second.events.some((event) => event.type === "turn.started")).toBe(false);
    const scripted = await folder.run({ script: "other.yaml" });
    expect([scripted.missed, scripted.outputs]).toEqual([["a | changed | replies of the script"], { t: "other" }]);
  });

  test("runs with --no-cache, and what it gives then is what is found", async () => {
    const folder = folderWith(
      "steps: { a: { run: date +%N, cache: true } }\noutputs: { o: '${{ steps.a.outputs.stdout }}' }\n",
    );
    const first = await folder.run();
    const fresh = await folder.run({ cache: false });
    expect(fresh.missed).toEqual(["a | refresh"]);
    expect(fresh.outputs).not.toEqual(first.outputs);
    expect((await folder.run()).outputs).toEqual(fresh.outputs);
  });
});

describe("a secret", () => {
  test("is in no entry and no name, in no form", async () => {
    const canary = 'c4nary "quoted" & é/+';
    const bytes = Buffer.from(canary);
    const forms = [
      canary,
      JSON.stringify(canary).slice(1, -1),
      encodeURIComponent(canary),
      bytes.toString("hex"),
      bytes.toString("base64"),
    ];
    const folder = folderWith(`
secrets: [TOKEN]
env: { ALL: "\${{ secrets.TOKEN }}" }
inputs: { given: { type: string } }
steps:
  a:
    run: cat forms; cat forms >&2; while read -r line; do echo "k$((n++))=$line" >> "$FLOW_OUTPUT"; done < forms
    env: { T: "\${{ secrets.TOKEN }}", G: "\${{ inputs.given }}" }
    cache: { key: "\${{ env.ALL }} \${{ inputs.given }}" }
  b: { foreach: ["\${{ inputs.given }}"], run: echo "$I", env: { I: "\${{ item }}" }, cache: { files: ["named*"] } }
`);
    folder.write("forms", `${forms.join("\n")}\n`);
    const given = { env: { ...process.env, TOKEN: canary }, inputs: { given: canary } };
    expect((await folder.run(given)).exitCode).toBe(0);
    expect((await folder.run(given)).cached.toSorted()).toEqual(["a", "b[0]"]);
    const kept = entries(folder).map((file) => readFileSync(file, "utf8"));
    expect(kept).toHaveLength(2);
    for (const form of [...forms, JSON.stringify(JSON.stringify(canary)).slice(3, -3)])
      expect(kept.filter((text) => text.includes(form))).toEqual([]);
    expect(kept.some((text) => text.includes("***"))).toBe(true);
  });

  test("too short to be masked is in no key either: only its name is", async () => {
    const folder = folderWith(
      'secrets: [PIN]\nenv: { P: "${{ secrets.PIN }}" }\nsteps: { a: { run: echo, env: { Q: "${{ env.P }}" }, cache: { key: "${{ env.P }}" } } }\n',
    );
    await folder.run({ env: { ...process.env, PIN: "123" } });
    expect((await folder.run({ env: { ...process.env, PIN: "987" } })).cached).toEqual(["a"]);
  });
});

describe("the folder of the cache", () => {
  const plain = "steps: { a: { run: echo ran >> count, cache: true } }\n";

  test.each([
    ["an empty file", ""],
    ["a part of one", '{"format":1,"key":"'],
    ["something else", '{"format":1,"outputs":{}}'],
    ["the entry of another key", undefined],
    ["no JSON", "\u0000\u0001"],
  ])("with %s in the place of an entry is a miss that is said, and mended", async (_, text) => {
    const folder = folderWith(plain);
    await folder.run();
    const [file = ""] = entries(folder);
    writeFileSync(file, text ?? readFileSync(file, "utf8").replace(/"key":"./, '"key":"g'));
    const { missed, exitCode, events } = await folder.run();
    expect([missed, exitCode]).toEqual([["a | damaged"], 0]);
    const warning = events.find((event) => event.type === "diagnostic");
    expect(warning).toMatchObject({ diagnostic: { code: "FLOW8008", severity: "warning" } });
    expect(JSON.stringify(warning)).toContain(file.slice(folder.path.length + 1));
    expect((await folder.run()).cached).toEqual(["a"]);
    expect(folder.read("count")).toBe("ran\nran\n");
  });

  test("that cannot be written costs a warning, once, and nothing else", async () => {
    const folder = folderWith("steps: { a: { foreach: [1, 2, 3], run: echo, cache: true } }\n", {
      ".flow/cache": "a file",
    });
    const { exitCode, events } = await folder.run();
    const warnings = events.flatMap((event) => (event.type === "diagnostic" ? [event.diagnostic.message] : []));
    expect(exitCode).toBe(0);
    expect(new Set(warnings).size).toBe(warnings.length);
    expect(warnings.join("\n")).toContain("could not be kept");
  });

  test("ignores itself for git, wherever runs are kept", async () => {
    const folder = folderWith(plain);
    await folder.run({ runsDir: join(folder.path, "elsewhere") });
    expect(folder.read(".flow/.gitignore")).toBe("*\n");
  });

  test("is shared by runs that go on at once", async () => {
    const folder = folderWith(
      "steps: { a: { foreach: [1, 2, 3, 4, 5, 6], run: 'echo \"$I\"', env: { I: '${{ item }}' }, cache: true } }\noutputs: { o: '${{ steps.a.outputs.items.*.stdout }}' }\n",
    );
    const all = await Promise.all([folder.run(), folder.run(), folder.run()]);
    for (const { exitCode, outputs } of all)
      expect([exitCode, outputs]).toEqual([0, { o: ["1", "2", "3", "4", "5", "6"] }]);
    expect(readdirSync(join(folder.path, ".flow/cache")).filter((name) => name.endsWith(".tmp"))).toEqual([]);
    expect((await folder.run()).cached).toHaveLength(6);
  });

  test("takes outputs of any size", async () => {
    const folder = folderWith(
      "steps: { a: { run: 'head -c 900000 /dev/zero | tr \"\\\\0\" x', cache: true } }\noutputs: { n: '${{ length(steps.a.outputs.stdout) }}' }\n",
    );
    await folder.run();
    expect(await folder.run()).toMatchObject({ cached: ["a"], outputs: { n: 900_000 } });
  });
});

describe("a resume", () => {
  const text = `
steps:
  a: { run: echo ran >> count; echo "n=1" >> "$FLOW_OUTPUT", cache: { files: [lock] } }
  b: { needs: [a], run: '[ -e go ]' }
outputs: { n: "\${{ steps.a.outputs.n }}" }
`;

  test("takes a step that was cached as it takes one that succeeded, though the cache is gone", async () => {
    const folder = folderWith(text);
    await folder.run();
    expect((await folder.run()).cached).toEqual(["a"]);
    folder.remove(".flow/cache");
    folder.write("go", "");
    const { exitCode, cached, missed, events, outputs } = await folder.resume();
    expect([exitCode, cached, missed, outputs]).toEqual([0, [], [], { n: "1" }]);
    expect(events.some((event) => event.type === "step.reused" && event.step === "a")).toBe(true);
    expect(folder.read("count")).toBe("ran\n");
  });

  test.each(["cached", "executed"])("--from runs a step again that was %s, whatever is kept", async (how) => {
    const folder = folderWith(text);
    if (how === "cached") await folder.run();
    await folder.run();
    folder.write("go", "");
    expect((await folder.resume({ from: "a" })).exitCode).toBe(0);
    expect(folder.read("count")).toBe("ran\nran\n");
  });

  test("--from of a step inside a group that was cached runs the group", async () => {
    const folder = folderWith(
      "steps: { a: { cache: true, steps: { b: { run: echo ran >> count } } }, c: { needs: [a], run: '[ -e go ]' } }\n",
    );
    await folder.run();
    await folder.run();
    folder.write("go", "");
    expect((await folder.resume({ from: "a/b" })).exitCode).toBe(0);
    expect(folder.read("count")).toBe("ran\nran\n");
  });

  test("keeps nothing it only reused: its files may have changed since", async () => {
    const folder = folderWith(text, { lock: "1" });
    await folder.run();
    folder.write("lock", "2");
    folder.write("go", "");
    const resumed = await folder.resume();
    expect(resumed.events.some((event) => event.type === "step.reused" && event.step === "a")).toBe(true);
    expect((await folder.run()).missed).toEqual(["a | changed | file lock"]);
  });

  test("--no-cache runs what was not done yet", async () => {
    const folder = folderWith(
      "steps: { z: { run: '[ -e go ]' }, a: { needs: [z], run: echo ran >> count, cache: true } }\n",
      { go: "" },
    );
    await folder.run();
    folder.remove("go");
    await folder.run();
    folder.write("go", "");
    expect((await folder.resume({ cache: false })).missed).toEqual(["a | refresh"]);
    expect(folder.read("count")).toBe("ran\nran\n");
  });
});
