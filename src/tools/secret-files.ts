/**
 * The built-in list of files that hold credentials. No tool reads them and no listing names them, whatever the
 * permissions say; case is ignored, because some file systems do.
 */

const names = new Set([
  ".env",
  ".envrc",
  ".npmrc",
  ".netrc",
  "_netrc",
  ".pypirc",
  ".pgpass",
  ".my.cnf",
  ".htpasswd",
  ".git-credentials",
  ".dockercfg",
  ".vault-token",
  ".terraformrc",
  "credentials.tfrc.json",
  ".s3cfg",
  ".boto",
  "application_default_credentials.json",
]);
const environment = /^\.env\./;
const privateKey = /^id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?$/;
const keyStore = /\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk)$/;
/** Below any folder; an entry that ends in `/` takes in all that lies below it. */
const places = [
  ".ssh/",
  ".gnupg/",
  ".aws/credentials",
  ".aws/config",
  ".aws/sso/",
  ".azure/",
  ".config/gcloud/",
  ".config/gh/hosts.yml",
  ".kube/",
  ".docker/config.json",
  ".cargo/credentials",
  ".cargo/credentials.toml",
  ".git/config",
  ".git/config.worktree",
  ".git/credentials",
];
/** A submodule's or worktree's own configuration, which may hold a remote with a password. */
const nestedGit = /(?:^|\/)\.git\/(?:modules|worktrees)\/.*\/?config(?:\.worktree)?$/;

/** What a name with wildcards is held against. Names as common as `*.json` are left to the exact list. */
const examples: readonly string[] = [
  ...[...names].filter((name) => !name.endsWith(".json")),
  ...["local", "development", "production", "staging", "test"].map((name) => `.env.${name}`),
  ...["rsa", "dsa", "ecdsa", "ed25519"].map((name) => `id_${name}`),
  ...["pem", "key", "p12", "pfx", "jks", "keystore", "kdbx", "ppk"].map((name) => `\u0001.${name}`),
  ...places,
  ".git/modules/",
  ".git/worktrees/",
];

/** Whether the file at this path, relative with `/` as separator, is one of them. */
export const isSecretFile: ((path: string) => boolean) & { readonly examples: readonly string[] } = Object.assign(
  isSecret,
  { examples },
);

function isSecret(path: string): boolean {
  const lower = path.toLowerCase();
  const name = lower.slice(lower.lastIndexOf("/") + 1);
  if (names.has(name) || privateKey.test(name) || keyStore.test(name)) return true;
  if (environment.test(name)) return name !== ".env.example";
  const anchored = `/${lower}`;
  const isBelow = (place: string) =>
    place.endsWith("/") ? `${anchored}/`.includes(`/${place}`) : anchored.endsWith(`/${place}`);
  return places.some(isBelow) || nestedGit.test(lower);
}
