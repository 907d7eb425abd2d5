import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Packed } from "./pack.js";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../", import.meta.url));

/** An entry of a package-lock.json. */
interface LockEntry {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly dev?: boolean;
}
type LockEntries = Readonly<Record<string, LockEntry>>;

const { packages: known } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as { packages: LockEntries };

/**
 * Makes an application that has packages of ours, and of others, in a folder. They are installed with scripts off, by a lock that takes what
 * is not ours from the repository's own, so that the same is installed tomorrow.
 */
export async function makeApplication(folder: string, ours: readonly Packed[], others: readonly string[] = []): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const packed = Object.fromEntries(
    ours.map(({ name, file, integrity, manifest }) => [
      `node_modules/${name}`,
      { ...manifest, name: undefined, resolved: `file:${file}`, integrity },
    ]),
  );
  const wanted = [...others, ...ours.flatMap(({ manifest }) => Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }))];
  const entries: Record<string, object> = { ...packed, ...closureOf(wanted.filter((name) => !Object.hasOwn(packed, `node_modules/${name}`))) };
  const manifest = {
    name: "application",
    private: true,
    dependencies: Object.fromEntries([
      ...ours.map(({ name, file }) => [name, `file:${file}`] as const),
      ...others.map((name) => [name, entryOf(`node_modules/${name}`).version] as const),
    ]),
  };
  const lock = { name: manifest.name, lockfileVersion: 3, requires: true, packages: { "": manifest, ...entries } };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  writeFileSync(join(folder, "package-lock.json"), JSON.stringify(lock));
  await run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: folder });
}

/** The entries of packages and of all that they depend on. */
function closureOf(names: readonly string[]): Readonly<Record<string, object>> {
  const found: Record<string, object> = {};
  const look = (name: string, from: string): void => {
    const place = placeOf(name, from);
    if (Object.hasOwn(found, place)) return;
    const { dev, ...entry } = entryOf(place);
    found[place] = entry;
    for (const needed of Object.keys({ ...entry.dependencies, ...entry.optionalDependencies })) look(needed, place);
  };
  for (const name of names) look(name, "");
  return found;
}

/** Where a package finds another, from the inside out. */
function placeOf(name: string, from: string): string {
  const nested = `${from}${from === "" ? "" : "/"}node_modules/${name}`;
  if (from === "" || Object.hasOwn(known, nested)) return nested;
  return placeOf(name, from.slice(0, Math.max(0, from.lastIndexOf("node_modules/") - 1)));
}

function entryOf(place: string): LockEntry {
  const entry = known[place];
  if (entry === undefined) throw new Error(`package-lock.json has no ${place}`);
  return entry;
}
