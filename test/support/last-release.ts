import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type * as Library from "../../packages/pawl/src/index.js";
import { readMigrations } from "../../packages/pawl/src/store/postgres/migrate.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const MIGRATIONS = "packages/pawl/src/store/postgres/migrations";

/** The library as it was at a commit. */
export interface Older extends Disposable {
  readonly commit: string;
  /** the newest migration it knows */
  readonly knows: number;
  load(): Promise<typeof Library>;
}

/**
 * The library as it was before a migration came: what still runs while the next release is rolled out. Undefined where
 * there is no history to take it from.
 */
export function before(migration: { readonly number: number; readonly name: string }): Older | undefined {
  const file = `${MIGRATIONS}/${String(migration.number).padStart(4, "0")}_${migration.name}.sql`;
  const cameWith = git("log", "--diff-filter=A", "--format=%H", "--", file);
  if (cameWith === undefined) return undefined;
  // Not committed yet: what is, is the one before.
  const commit = git("rev-parse", "--verify", "--quiet", cameWith === "" ? "HEAD" : `${cameWith.split("\n").at(-1)}^`);
  return commit === undefined || commit === "" ? undefined : unpack(commit);
}

function unpack(commit: string): Older {
  const folder = mkdtempSync(join(tmpdir(), "pawl-older-"));
  const tar = execFileSync("git", ["archive", commit, "packages/pawl", "tsconfig.base.json"], { cwd: ROOT, maxBuffer: 1 << 28 });
  execFileSync("tar", ["-x", "-C", folder], { input: tar });
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const knows = readMigrations(pathToFileURL(`${join(folder, MIGRATIONS)}/`)).at(-1)?.number ?? 0;
  return {
    commit,
    knows,
    load: () => import(/* @vite-ignore */ join(folder, "packages/pawl/src/index.ts")),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function git(...words: readonly string[]): string | undefined {
  try {
    return execFileSync("git", words, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return undefined;
  }
}
