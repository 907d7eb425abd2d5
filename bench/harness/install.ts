import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { installPackages } from "../../scripts/servers.mjs";
import { SYSTEMS, type SystemEntry } from "../systems/about.ts";
import type { RunnableSystem } from "./turns.js";

const BENCH = resolve(import.meta.dirname, "..");
const ROOT = resolve(BENCH, "..");

export interface Installed {
  readonly systems: readonly RunnableSystem[];
  /** what cannot take part, and why */
  readonly skipped: Readonly<Record<string, string>>;
}

/** Gets what the wanted systems need, and says which of them can run. Asked for nothing but Pawl, it gets nothing. */
export function install(wanted: readonly string[], say: (text: string) => void): Installed {
  const entries = SYSTEMS.filter(({ name }) => wanted.includes(name));
  // Who is on Redis is looked at by a client from there.
  const npmProblem = entries.some(({ origin, store }) => "npm" in origin || store === "redis") ? installPeers(say) : undefined;
  const debian = [...new Set(entries.flatMap(packagesOf))].filter((name) => versionOfPackage(name) === undefined);
  if (debian.length > 0) installPackages(debian, "the benchmark", say);

  const systems: RunnableSystem[] = [];
  const skipped: Record<string, string> = {};
  for (const entry of entries) {
    const version = versionOf(entry);
    const missing = packagesOf(entry).find((name) => versionOfPackage(name) === undefined);
    if (missing !== undefined) skipped[entry.name] = `Debian's ${missing} cannot be installed here`;
    else if (version === undefined || (npmProblem !== undefined && entry.store === "redis")) {
      skipped[entry.name] = `the peers could not be installed: ${npmProblem}`;
    } else systems.push({ ...entry, version });
  }
  return { systems, skipped };
}

function installPeers(say: (text: string) => void): string | undefined {
  const lock = readFileSync(join(BENCH, "package-lock.json"), "utf8");
  const installed = join(BENCH, "node_modules/.package-lock.json");
  if (existsSync(installed) && isSubset(JSON.parse(readFileSync(installed, "utf8")) as Lock, JSON.parse(lock) as Lock)) return undefined;
  say("installing the peers into bench/node_modules (once)");
  // Their engines may ask for a newer Node than this one: that is among what is installed.
  const { status, stderr } = spawnSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--engine-strict=false", "--loglevel=error"], {
    cwd: BENCH,
    encoding: "utf8",
  });
  return status === 0 ? undefined : stderr.trim().split("\n").slice(0, 3).join(" ");
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version?: string }>>;
}

/** npm leaves out what other platforms need, so not all of the lock is installed, but nothing else must be. */
function isSubset(installed: Lock, lock: Lock): boolean {
  return Object.entries(installed.packages).every(([path, { version }]) => lock.packages[path]?.version === version);
}

/** Redis itself is a package of every system on it. */
function packagesOf({ origin, store }: SystemEntry): readonly string[] {
  return [...("debian" in origin ? origin.debian : []), ...(store === "redis" ? ["redis-server"] : [])];
}

function versionOf({ origin }: SystemEntry): string | undefined {
  if ("debian" in origin) return versionOfPackage(origin.debian[0] ?? "");
  const folder = "npm" in origin ? join(BENCH, "node_modules", origin.npm) : join(ROOT, "packages", origin.workspace);
  const file = join(folder, "package.json");
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version : undefined;
}

function versionOfPackage(name: string): string | undefined {
  const { status, stdout } = spawnSync("dpkg-query", ["--status", name], { encoding: "utf8" });
  return status === 0 && /^Status: .* installed$/m.test(stdout) ? /^Version: (.*)$/m.exec(stdout)?.[1] : undefined;
}
