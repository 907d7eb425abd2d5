import { pawlError } from "pawl/service";

/**
 * Strict JSON: UTF-8, no deeper than 64, no keys that reach for a prototype, no text that a store could not hold.
 * Deeper or stranger bodies are refused before they become values that others walk through.
 */
export const MAX_JSON_DEPTH = 64;

const utf8 = new TextDecoder("utf-8", { fatal: true });

export function parseJson(bytes: Uint8Array, { maxDepth }: Pick<JsonShape, "maxDepth"> = shapeOf(bytes)): unknown {
  if (maxDepth > MAX_JSON_DEPTH) throw invalidJson(`it is deeper than ${MAX_JSON_DEPTH}`);
  const value = parse(decode(bytes));
  // Plain texts can neither spell such a key nor such a character without one of these two bytes' worth of hints.
  if (mayBeHostile(bytes)) checkValue(value);
  return value;
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalidJson("it is not UTF-8");
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalidJson("its syntax is wrong");
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

const COMMA = 0x2c;
const COLON = 0x3a;

/** Bytes of heap, about: of an array or object, of a place in one, and of a name with what objects know of theirs. */
const COMPOUND_BYTES = 48;
const ELEMENT_BYTES = 12;
const NAME_BYTES = 64;

export interface JsonShape {
  /** how deep it is nested */
  readonly maxDepth: number;
  /** bytes of heap that its value takes, about and rather more: that of `[],[],…` takes twenty times its text */
  readonly heap: number;
}

/** By signs outside of texts: one pass over the bytes, before anything is built. */
export function shapeOf(bytes: Uint8Array): JsonShape {
  let depth = 0;
  let maxDepth = 0;
  let heap = bytes.length;
  let inText = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (inText) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) inText = false;
    } else if (byte === QUOTE) inText = true;
    else if (byte === 0x7b || byte === 0x5b) {
      maxDepth = Math.max(maxDepth, ++depth);
      heap += COMPOUND_BYTES;
    } else if (byte === 0x7d || byte === 0x5d) depth--;
    else if (byte === COMMA) heap += ELEMENT_BYTES;
    else if (byte === COLON) heap += NAME_BYTES;
  }
  return { maxDepth, heap };
}

/** An escape can spell anything; without one, only the plain words can do harm. */
function mayBeHostile(bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return text.includes("\\u") || text.includes("__proto__") || text.includes('"prototype"');
}

function checkValue(value: unknown): void {
  if (typeof value === "string") checkText(value);
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const item of value) checkValue(item);
    return;
  }
  for (const [key, item] of Object.entries(value)) {
    if (key === "__proto__" || (key === "constructor" && hasPrototype(item))) throw invalidJson(`it has a key ${key}`);
    checkText(key);
    checkValue(item);
  }
}

function hasPrototype(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.hasOwn(value, "prototype");
}

function checkText(text: string): void {
  if (text.includes("\u0000")) throw invalidJson("a text holds a NUL character");
  if (!text.isWellFormed()) throw invalidJson("a text holds half of a surrogate pair");
}

function invalidJson(reason: string) {
  return pawlError("json_invalid", { reason });
}
