import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");

/** An earlier commit, built from its own lock, with the benchmark's own files of that time. */
export interface Built {
  readonly commit: string;
  /** its folder `bench` */
  readonly bench: string;
}

/**
 * Unpacks and builds a commit, once: a second call finds it. Its children run from its own `bench/child` and `bench/systems`,
 * because those speak the library's interface of that commit. So the commands in `contract/child.ts` may grow but not change.
 */
export function built(reference: string, say: (text: string) => void): Built {
  const commit = git("rev-parse", "--verify", `${reference}^{commit}`);
  const folder = join(ROOT, "bench/.before", commit.slice(0, 12));
  const done = join(folder, ".built");
  if (!existsSync(done)) {
    say(`building ${commit.slice(0, 12)} into bench/.before (once)`);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const files = execFileSync("git", ["archive", commit], { cwd: ROOT, maxBuffer: 1 << 29 });
    execFileSync("tar", ["-x", "-C", folder], { input: files });
    step(folder, "npm", "ci", "--no-audit", "--no-fund", "--loglevel=error");
    step(folder, "npm", "run", "build");
    writeFileSync(done, "");
  }
  return { commit, bench: join(folder, "bench") };
}

function git(...words: readonly string[]): string {
  const { status, stdout } = spawnSync("git", words, { cwd: ROOT, encoding: "utf8" });
  if (status !== 0) throw new Error(`there is no commit ${words.at(-1)?.replace("^{commit}", "")} here: a clone with its whole history is needed`);
  return stdout.trim();
}

function step(folder: string, command: string, ...args: readonly string[]): void {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd: folder, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} failed: ${error?.message ?? `${stdout}${stderr}`.trim().slice(-2_000)}`);
}
