import { failureOf } from "../jobs/failure.js";

/**
 * What can be stored: JSON that reads back as it was written, in every store and every language.
 * Postgres cannot hold NUL in text, and lone surrogates are no UTF-8, so both are refused at the edge.
 */
export type Encoded = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly reason: string };

export function encode(value: unknown): Encoded {
  let text: string | undefined;
  try {
    text = isPlain(value, 0) ? JSON.stringify(value) : JSON.stringify(value, refuseWhatJsonWouldLose);
  } catch (error) {
    // A toJSON is user code, and so is what it throws.
    return { ok: false, reason: failureOf(error).message.split("\n")[0] || "it throws" };
  }
  if (text === undefined) return value === undefined ? { ok: true, text: "null" } : { ok: false, reason: `a ${typeof value} is not JSON` };
  // JSON.stringify writes NUL and lone surrogates as escapes: looking for the escapes is one fast scan.
  const found = text.includes("\\u") && UNSTORABLE.test(text) ? unstorable(text) : undefined;
  if (found === undefined) return { ok: true, text };
  return { ok: false, reason: found === "\\u0000" ? "a text holds a NUL character" : "a text holds half of a surrogate pair" };
}

const DEEPEST = 32;

/** Whether JSON loses nothing of it, told at a glance: most values are. What is not, or is deep or circular, is looked at closely. */
function isPlain(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
    case "undefined":
      return true;
    case "number":
      return Number.isFinite(value);
    case "object": {
      if (value === null) return true;
      if (depth > DEEPEST) return false;
      if (Array.isArray(value)) return value.every((item) => isPlain(item, depth + 1));
      const prototype = Object.getPrototypeOf(value);
      if ((prototype !== Object.prototype && prototype !== null) || "toJSON" in value) return false;
      for (const key in value) if (!isPlain((value as Record<string, unknown>)[key], depth + 1)) return false;
      return true;
    }
    default:
      return false;
  }
}

const UNSTORABLE = /\\u(?:0000|d[89ab][0-9a-f]{2}|d[c-f][0-9a-f]{2})/;

/** An even number of backslashes before it means that the backslash itself is escaped: plain text that looks like an escape. */
function isRealEscape(text: string, at: number): boolean {
  let backslashes = 0;
  while (text[at - 1 - backslashes] === "\\") backslashes++;
  return backslashes % 2 === 0;
}

/** The first escape of something that cannot be stored. */
function unstorable(text: string): string | undefined {
  for (const match of text.matchAll(new RegExp(UNSTORABLE, "g"))) if (isRealEscape(text, match.index)) return match[0];
  return undefined;
}

function refuseWhatJsonWouldLose(_key: string, value: unknown): unknown {
  switch (typeof value) {
    case "bigint":
      throw new TypeError("a BigInt is not JSON");
    case "function":
    case "symbol":
      throw new TypeError(`a ${typeof value} is not JSON`);
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`${value} is not JSON`);
      return value;
    default:
      // JSON would make an empty object of it.
      if (value instanceof Map || value instanceof Set) throw new TypeError(`a ${value instanceof Map ? "Map" : "Set"} is not JSON`);
      return value;
  }
}

export function decode(text: string): unknown {
  return JSON.parse(text);
}
