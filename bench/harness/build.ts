import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");

/** What children use of each package. The library first: the other is built on it. */
const PACKAGES = { pawl: "dist/index.js", server: "dist/telemetry/index.js" };

/** Children use the packages as they are published. Builds them when a source is newer than what was built. */
export function buildIfStale(say: (text: string) => void): void {
  for (const [name, entry] of Object.entries(PACKAGES)) {
    const folder = join(ROOT, "packages", name);
    const stamp = join(folder, "tsconfig.tsbuildinfo");
    const last = existsSync(join(folder, entry)) && existsSync(stamp) ? statSync(stamp).mtimeMs : 0;
    if (newest(join(folder, "src")) <= last) continue;
    say(`building packages/${name}`);
    // What has errors is written all the same: a measurement in the middle of a change is better than none.
    const errors = run("node_modules/.bin/tsc", "-b", `packages/${name}`);
    if (errors !== undefined) say(`packages/${name} has type errors; measuring what the compiler made of it:\n${errors}`);
  }
  // Whoever else has built since may have left them behind.
  const problem = run(process.execPath, "scripts/copy-assets.mjs");
  if (problem !== undefined) throw new Error(problem);
}

function newest(folder: string): number {
  const times = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith(".test.ts"))
    .map((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs);
  return Math.max(...times);
}

function run(command: string, ...args: string[]): string | undefined {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: ROOT, encoding: "utf8" });
  return status === 0 ? undefined : (error?.message ?? `${stdout}${stderr}`.trim());
}
