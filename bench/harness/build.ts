import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");

/** Children use the package as it is published. Builds it when a source is newer than what was built. */
export function buildIfStale(say: (text: string) => void): void {
  const built = join(ROOT, "packages/pawl/dist/index.js");
  const stamp = join(ROOT, "packages/pawl/tsconfig.tsbuildinfo");
  const last = existsSync(built) && existsSync(stamp) ? statSync(stamp).mtimeMs : 0;
  if (newest(join(ROOT, "packages/pawl/src")) > last) {
    say("building Pawl");
    // What has errors is written all the same: a measurement in the middle of a change is better than none.
    const errors = run("node_modules/.bin/tsc", "-b", "packages/pawl");
    if (errors !== undefined) say(`Pawl has type errors; measuring what the compiler made of it:\n${errors}`);
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
