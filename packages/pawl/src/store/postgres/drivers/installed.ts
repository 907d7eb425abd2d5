import { createRequire } from "node:module";
import { resolve } from "node:path";

/**
 * The places that packages are looked for from: Pawl's own, and the application's. A Pawl that is linked into an application lies elsewhere, and
 * does not see what is installed beside that. `script` is undefined where Node was given no file.
 */
export function lookupPlaces(script = process.argv[1]): readonly string[] {
  return [import.meta.url, resolve(script ?? "script")];
}

/** The file of a package, as seen from the first place that sees it; undefined if none does. */
export function findInstalled(name: string, places: readonly string[] = lookupPlaces()): string | undefined {
  for (const place of places) {
    try {
      return createRequire(place).resolve(name);
    } catch {
      // not from here
    }
  }
  return undefined;
}
