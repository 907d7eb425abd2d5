import { createRequire } from "node:module";
import type pg from "pg";
import { pawlError } from "../../../core/values/error.js";
import { findInstalled, lookupPlaces } from "./installed.js";

/** The file of `pg`, which the application has installed, or which came with pawl-embedded. Throws `driver_missing`. */
export function findPg(places: readonly string[] = lookupPlaces()): string {
  const embedded = findInstalled("pawl-embedded/package.json", places);
  const file = findInstalled("pg", embedded === undefined ? places : [...places, embedded]);
  if (file === undefined) throw pawlError("driver_missing", { package: "pg" });
  return file;
}

/** Loaded when it is used: a store in memory and a client of a service need no `pg`. */
export function loadPg(file: string = findPg()): typeof pg {
  return createRequire(file)(file) as typeof pg;
}
