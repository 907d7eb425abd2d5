import { createRequire } from "node:module";
import { pawlError } from "../../../core/values/error.js";
import { findInstalled, lookupPlaces } from "../drivers/installed.js";

const EMBEDDED = "pawl-embedded";

/** The fields read of a package.json. */
interface Manifest {
  readonly version: string;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/**
 * The file of a package that pawl-embedded brings: a Postgres for one platform, or PGlite. Undefined if npm left it out. Throws
 * `embedded_missing` without pawl-embedded, and `embedded_mismatch` if it is not made for this version of Pawl.
 */
export function findEmbedded(name: string, places: readonly string[] = lookupPlaces()): string | undefined {
  const manifest = findInstalled(`${EMBEDDED}/package.json`, places);
  if (manifest === undefined) throw pawlError("embedded_missing");
  const own = manifestAt(import.meta.url, "pawl/package.json");
  const needed = own.peerDependencies?.[EMBEDDED] ?? own.version;
  const { version } = manifestAt(manifest, manifest);
  if (!fitsCaret(version, needed)) throw pawlError("embedded_mismatch", { pawl: own.version, needed, found: version });
  return findInstalled(name, [manifest]);
}

function manifestAt(from: string, name: string): Manifest {
  return createRequire(from)(name) as Manifest;
}

/** As npm reads "^1.2.3" and "^0.1.2": the first number that is not zero stays, and those behind it may grow. */
export function fitsCaret(version: string, range: string): boolean {
  const [found, wanted] = [numbersOf(version), numbersOf(range)];
  const fixed = wanted.findIndex((number) => number > 0);
  const differs = wanted.findIndex((number, place) => found[place] !== number);
  return differs === -1 || (differs > fixed && Number(found[differs]) > Number(wanted[differs]));
}

function numbersOf(version: string): readonly number[] {
  return (/(\d+)\.(\d+)\.(\d+)/.exec(version) ?? []).slice(1).map(Number);
}
