/**
 * Installs, from Debian's packages, the servers and tools that some suites need besides the embedded Postgres. Only as root on
 * Debian, and only what is missing; elsewhere those suites say themselves why they are skipped.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";

export const debianPostgres = "/usr/lib/postgresql/15/bin";
export const pgbouncer = "/usr/sbin/pgbouncer";
export const faketime = "/usr/bin/faketime";
export const tmux = "/usr/bin/tmux";
export const prometheus = "/usr/bin/prometheus";
export const zsh = "/usr/bin/zsh";
export const fish = "/usr/bin/fish";

const wanted = [
  { file: `${debianPostgres}/postgres`, package: "postgresql-15" },
  { file: pgbouncer, package: "pgbouncer" },
  { file: faketime, package: "faketime" },
  { file: tmux, package: "tmux" },
  { file: prometheus, package: "prometheus" },
  { file: zsh, package: "zsh" },
  { file: fish, package: "fish" },
];

/** The package's own script asks this whether to make and start a cluster: ours are private, it need not. */
const clusterConfig = "/etc/postgresql-common/createcluster.d/zz-pawl-tests.conf";
/** Asked by every package before it starts a service; 101 means: do not. */
const servicePolicy = "/usr/sbin/policy-rc.d";

export async function installServers() {
  const missing = wanted.filter(({ file }) => !existsSync(file)).map((each) => each.package);
  if (missing.length === 0) return;
  const problem = installPackages(missing, "the tests");
  if (problem !== undefined) console.log(`That failed, so the suites on them are skipped: ${problem}`);
}

/** Starts none of their services. Answers what went wrong; elsewhere than as root on Debian it does nothing. */
export function installPackages(names, purpose, say = console.log) {
  if (!canInstall()) return undefined;
  say(`Installing ${names.join(" and ")} from Debian's packages for ${purpose} …`);
  return withoutStarting(() => apt("update") ?? apt("install", "--no-install-recommends", ...names));
}

/** As root on Debian. */
export function canInstall() {
  return process.getuid?.() === 0 && existsSync("/usr/bin/apt-get");
}

function apt(...args) {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const { status, stderr, error } = spawnSync("apt-get", ["-qq", "-y", ...args], { env, encoding: "utf8", stdio: ["ignore", "ignore", "pipe"] });
  return status === 0 ? undefined : (error?.message ?? stderr.trim().split("\n").at(-1));
}

/** Leaves nothing running and no trace, also on Ctrl-C, which apt-get hears as well: what stood there before stays. */
function withoutStarting(work) {
  const interrupted = () => process.exit(130);
  process.once("SIGINT", interrupted);
  const made = [
    [clusterConfig, "create_main_cluster = false\n", 0o644],
    [servicePolicy, "#!/bin/sh\nexit 101\n", 0o755],
  ].filter(([file]) => !existsSync(file));
  for (const [file, text, mode] of made) {
    mkdirSync(file.slice(0, file.lastIndexOf("/")), { recursive: true });
    writeFileSync(file, text, { mode });
  }
  try {
    return work();
  } finally {
    for (const [file] of made) rmSync(file, { force: true });
    setImmediate(() => process.off("SIGINT", interrupted));
  }
}

if (import.meta.filename === process.argv[1]) await installServers();
