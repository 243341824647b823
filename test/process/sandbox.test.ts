import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { spawnSync } from "node:child_process";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Marks } from "../../src/process/marks.ts";
import { runProcess } from "../../src/process/run.ts";
import { sandboxLaunch } from "../../src/process/sandbox.ts";

const canary = "CANARY-sandbox-51c2";
const base = realpathSync(mkdtempSync(join(tmpdir(), "flow-sandbox-")));
const [workspace, home] = [join(base, "work"), join(base, "home")];
for (const folder of ["work/.git/hooks", "work/.flow", "home/.ssh", "outside"])
  mkdirSync(join(base, folder), { recursive: true });
for (const file of ["work/.env", "home/.ssh/id_rsa", "work/.flow/log"]) writeFileSync(join(base, file), canary);
symlinkSync(join(home, ".ssh/id_rsa"), join(workspace, "link"));
afterAll(() => rmSync(base, { recursive: true, force: true }));

const path = process.env["PATH"] ?? "";
const make = (network: boolean): ReturnType<typeof sandboxLaunch> =>
  sandboxLaunch({ path, workspace, home, network, isSecret: (name) => name === ".env" });
const launch = make(false);
const marks = new Marks("sandbox-test");

/** A workspace with a repository, and a file that is there when something escaped. */
function repository({ hooks, worktrees }: { readonly hooks: boolean; readonly worktrees: boolean }): [string, string] {
  const made = mkdtempSync(join(base, "repo-"));
  writeFileSync(join(made, "a.txt"), "a\n");
  git(made, "init", "-q", "-b", "main", ".");
  if (!hooks) rmSync(join(made, ".git/hooks"), { recursive: true, force: true });
  if (worktrees) git(made, "config", "extensions.worktreeConfig", "true");
  return [made, `${made}-escaped`];
}

function git(cwd: string, ...args: string[]): { readonly status: number | null; readonly stdout: string } {
  return spawnSync("git", args, { cwd, encoding: "utf8", env: { PATH: path, HOME: home } });
}

const sandboxOf = (made: string): ReturnType<typeof sandboxLaunch> =>
  sandboxLaunch({ path, workspace: made, home, network: false, isSecret: () => false });

async function inside(script: string, given = launch, cwd = workspace): Promise<string> {
  if (given === undefined) throw new Error("there is no sandbox");
  const argv = ["bash", "--noprofile", "--norc", "-c", `exec 2>&1\n${script}`];
  const ran = await runProcess({
    argv,
    cwd,
    env: { PATH: path, HOME: home },
    marks,
    launch: given,
    grace: 200,
  });
  return ran.kind === "spawn_failed" ? ran.message : ran.stdout.text.trim();
}

describe("without bubblewrap", () => {
  it("there is no sandbox, and that is said", () => {
    expect(sandboxLaunch({ path: base, workspace, home, network: false, isSecret: () => false })).toBeUndefined();
  });
});

if (launch === undefined) console.log("skipped: this machine has no bubblewrap that works");
describe.skipIf(launch === undefined)("in the sandbox", () => {
  it("what is to be shown can be read and not written, below /tmp too, and nothing around it is there", async () => {
    const place = mkdtempSync("/tmp/flow-shown-");
    try {
      for (const name of ["shown", "other"]) {
        mkdirSync(join(place, name));
        writeFileSync(join(place, name, "file"), `${name} is there\n`);
      }
      const shown = [join(place, "shown"), join(place, "none")];
      const given = sandboxLaunch({ path, workspace, home, network: false, isSecret: () => false, shown });
      const [read, wrote, other] = (
        await inside(`cat ${place}/shown/file; echo x >> ${place}/shown/file; ls ${place}`, given)
      ).split("\n");
      expect([read, wrote, other]).toEqual(["shown is there", expect.stringContaining("Read-only"), "shown"]);
    } finally {
      rmSync(place, { recursive: true });
    }
  });

  let port = 0;
  const server = createServer((socket) => socket.end(canary));
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    port = typeof address === "object" ? (address?.port ?? 0) : 0;
  });
  afterAll(() => void server.close());

  it("a command works in the workspace", async () => {
    expect(await inside("pwd; echo a > new.txt; mkdir d; cat new.txt; node -e 'console.log(1)'")).toBe(
      `${workspace}\na\n1`,
    );
    expect(readFileSync(join(workspace, "new.txt"), "utf8")).toBe("a\n");
  });

  it.each([
    ["writing outside", "echo x > ../outside/x"],
    ["writing to the system", "touch /etc/flow-x /usr/flow-x /var/flow-x /root/flow-x /flow-x"],
    ["writing flow's own state", "echo x > .flow/log; touch .flow/new; rm -rf .flow; mv .flow gone"],
    ["writing git's hooks", "echo x > .git/hooks/pre-commit; rm -rf .git/hooks; mv .git/hooks .git/gone"],
    ["making the system writable", "mount -o remount,rw /; umount -l .flow; unshare -r mount --bind /tmp /etc"],
    ["reading credentials", "cat .env link ~/.ssh/id_rsa; ls ~/.ssh"],
    ["removing what covers them", "rm -f .env; umount .env ~/.ssh; cat .env ~/.ssh/id_rsa"],
    ["reading through a process", "cat /proc/1/root/etc/../$HOME/.ssh/id_rsa /proc/*/cwd/.env; ls /proc/1/root/run"],
  ])("%s has no effect", async (_what, script) => {
    const said = await inside(script);
    expect(said).not.toContain(canary);
    const left = ["outside/x", "work/.git/hooks/pre-commit", "work/.flow/new", "work/gone", "work/.git/gone"];
    expect(left.filter((name) => existsSync(join(base, name)))).toEqual([]);
    expect(["/etc/flow-x", "/usr/flow-x", "/var/flow-x", "/flow-x"].filter((name) => existsSync(name))).toEqual([]);
    expect(
      ["work/.env", "home/.ssh/id_rsa", "work/.flow/log"].map((name) => readFileSync(join(base, name), "utf8")),
    ).toEqual([canary, canary, canary]);
  });

  it.each([
    ["a configuration by way of a new folder", "mv .git g && cp -r g .git && git config core.fsmonitor ESCAPE"],
    ["a configuration", "git config core.fsmonitor ESCAPE; mv .git/config .git/c; cp .git/c .git/config"],
    [
      "a common folder elsewhere",
      "cp -r .git g; git config -f g/config core.fsmonitor ESCAPE; echo ../g > .git/commondir",
    ],
    ["a hook", "mkdir -p .git/hooks; printf '#!/bin/sh\\nESCAPE' > .git/hooks/post-index-change"],
    ["a worktree's configuration", "git config -f .git/config.worktree core.fsmonitor ESCAPE"],
  ])("git runs nothing outside that was written in there: %s", async (_what, script) => {
    for (const hooks of [true, false]) {
      const [made, escaped] = repository({ hooks, worktrees: true });
      await inside(script.replaceAll("ESCAPE", `"touch ${escaped}; false"`), sandboxOf(made), made);
      expect(git(made, "status", "--short").status).toBe(0);
      git(made, "add", ".");
      expect(existsSync(escaped)).toBe(false);
      expect(existsSync(join(made, ".git/commondir"))).toBe(false);
    }
  });

  it("a repository cannot be made of the workspace, and nothing is left of what stood in its place", async () => {
    const [made, escaped] = repository({ hooks: false, worktrees: false });
    rmSync(join(made, ".git"), { recursive: true });
    const launch = sandboxOf(made);
    expect(existsSync(join(made, ".git"))).toBe(false);
    const script = `git init -q .; git config core.fsmonitor "touch ${escaped}; false"; rmdir .git; mv .git g; ls`;
    const said = await Promise.all([1, 2].map(() => inside(script, launch, made)));
    expect(said[0]).toContain("a.txt");
    git(made, "status", "--short");
    expect([existsSync(join(made, ".git")), existsSync(join(made, "g")), existsSync(escaped)]).toEqual([
      false,
      false,
      false,
    ]);
  });

  it("a repository that came later is known, and git works in it", async () => {
    const [made] = repository({ hooks: true, worktrees: false });
    const folder = join(made, ".git");
    renameSync(folder, `${made}-git`);
    const launch = sandboxOf(made);
    renameSync(`${made}-git`, folder);
    const script =
      "git add a.txt && git -c user.name=a -c user.email=a@b commit -qm one && git log --format=%s; git checkout -qb b";
    expect(await inside(script, launch, made)).toBe("one");
    expect(git(made, "branch", "--show-current").stdout).toBe("b\n");
  });

  it("what is written to /tmp stays there", async () => {
    const name = `flow-sandbox-${process.pid}-stays`;
    expect(await inside(`echo x > /tmp/${name}; cat /tmp/${name}`)).toBe("x");
    expect(existsSync(join("/tmp", name))).toBe(false);
  });

  it("there is no network, unless it is allowed", async () => {
    const connect = `timeout 5 bash -c 'cat < /dev/tcp/127.0.0.1/${port}'`;
    expect(await inside(connect)).not.toContain(canary);
    expect(await inside(connect, make(true))).toBe(canary);
  });

  it("no process but its own can be seen or ended, and no environment but its own be read", async () => {
    process.env["FLOW_SANDBOX_CANARY"] = canary;
    const said = await inside("cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; kill -9 -1; kill -9 1");
    delete process.env["FLOW_SANDBOX_CANARY"];
    expect(said).not.toContain(canary);
    expect(await inside("ls -d /proc/[0-9]* | wc -l")).toMatch(/^[1-9]$/);
  });

  it("nothing it started outlives it", async () => {
    await inside("(setsid nohup sleep 4242 &) ; sleep 0.1");
    expect(await marks.reap()).toBeFalsy();
  });
});
