import { gitUser } from "../process/git-user.ts";

/** Where the services tell who started a job. */
const actors = [
  "GITHUB_ACTOR",
  "GITLAB_USER_LOGIN",
  "BUILDKITE_BUILD_CREATOR",
  "BITBUCKET_STEP_TRIGGERER_UUID",
  "CIRCLE_USERNAME",
  "BUILD_REQUESTEDFOR",
];

/** Who speaks here: in CI whoever started the job, else the user as git knows them, else as the system does. */
export function userName(env: { readonly [name: string]: string | undefined }, cwd: string): string {
  const first = (names: readonly string[]): string | undefined =>
    names.map((name) => (Object.hasOwn(env, name) ? env[name] : undefined)).find((value) => (value ?? "") !== "");
  const actor = first(["CI"]) === undefined ? undefined : first(actors);
  return actor ?? gitUser(cwd, env) ?? first(["USER", "LOGNAME", "USERNAME"]) ?? "unknown";
}
