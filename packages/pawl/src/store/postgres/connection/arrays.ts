/**
 * Array parameters as Postgres array literals. One text per column is what both drivers take unchanged, and building
 * it here is several times cheaper than the drivers' generic conversion.
 */

/** For values without special characters: numbers, uuids, hex. `undefined` and `null` become NULL. */
export function plainArray(values: readonly (string | number | boolean | null | undefined)[]): string {
  let text = "{";
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (i > 0) text += ",";
    text += value === undefined || value === null ? "NULL" : value;
  }
  return `${text}}`;
}

const SPECIAL = /["\\]/g;

export function textArray(values: readonly (string | null | undefined)[]): string {
  let text = "{";
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (i > 0) text += ",";
    if (value === undefined || value === null) text += "NULL";
    else text += `"${value.includes('"') || value.includes("\\") ? value.replace(SPECIAL, "\\$&") : value}"`;
  }
  return `${text}}`;
}

/** An array whose elements would all be NULL: unnest pads it. */
export const ALL_NULL = "{}";
