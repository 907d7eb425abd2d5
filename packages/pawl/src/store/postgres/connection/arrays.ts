/**
 * Array parameters as Postgres array literals. One text per column is what both drivers take unchanged, and building
 * it here is several times cheaper than the drivers' generic conversion.
 */

declare const arrayText: unique symbol;
/** An array literal. */
export type ArrayText = string & { readonly [arrayText]: true };

/** For values without special characters: numbers, uuids, hex. `undefined` and `null` become NULL. */
export function plainArray(values: readonly (string | number | boolean | null | undefined)[]): ArrayText {
  let text = "{";
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (i > 0) text += ",";
    text += value === undefined || value === null ? "NULL" : value;
  }
  return `${text}}` as ArrayText;
}

const SPECIAL = /["\\]/g;

export function textArray(values: readonly (string | null | undefined)[]): ArrayText {
  let text = "{";
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (i > 0) text += ",";
    if (value === undefined || value === null) text += "NULL";
    else text += `"${value.includes('"') || value.includes("\\") ? value.replace(SPECIAL, "\\$&") : value}"`;
  }
  return `${text}}` as ArrayText;
}

/** An array whose elements would all be NULL: unnest pads it. */
export const ALL_NULL = "{}" as ArrayText;

/** For numbers of which none is missing. */
export function numbersText(values: readonly number[]): ArrayText {
  return `{${values.join(",")}}` as ArrayText;
}

/** Types whose texts may hold special characters. */
const QUOTED = /^(?:text|json|jsonb|varchar)\[\]$/;

/** How arrays of a type are written. One with nothing in it but NULL is sent as an empty one: to what reads it, it is the same. */
export function arrayOf(type: string): (values: readonly (string | number | boolean | null | undefined)[]) => ArrayText {
  const write = (QUOTED.test(type) ? textArray : plainArray) as typeof plainArray;
  return (values) => (values.some((value) => value !== undefined && value !== null) ? write(values) : ALL_NULL);
}
