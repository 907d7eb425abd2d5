import { pawlError } from "pawl";

/**
 * Strict JSON: UTF-8, no deeper than 64, no keys that reach for a prototype, no text that a store could not hold.
 * Deeper or stranger bodies are refused before they become values that others walk through.
 */
export const DEEPEST = 64;

const utf8 = new TextDecoder("utf-8", { fatal: true });

export function parseJson(bytes: Uint8Array, { deepest }: Pick<Shape, "deepest"> = shapeOf(bytes)): unknown {
  if (deepest > DEEPEST) throw refused(`it is deeper than ${DEEPEST}`);
  const value = parsed(decoded(bytes));
  // Plain texts can neither spell such a key nor such a character without one of these two bytes' worth of hints.
  if (mayBeHostile(bytes)) checkWhole(value);
  return value;
}

function decoded(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw refused("it is not UTF-8");
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw refused("its syntax is wrong");
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

const COMMA = 0x2c;
const COLON = 0x3a;

/** Bytes of heap, about: of an array or object, of a place in one, and of a name with what objects know of theirs. */
const OF_COMPOUND = 48;
const OF_PLACE = 12;
const OF_NAME = 64;

export interface Shape {
  /** how deep it is nested */
  readonly deepest: number;
  /** bytes of heap that its value takes, about and rather more: that of `[],[],…` takes twenty times its text */
  readonly heap: number;
}

/** By signs outside of texts: one pass over the bytes, before anything is built. */
export function shapeOf(bytes: Uint8Array): Shape {
  let depth = 0;
  let deepest = 0;
  let heap = bytes.length;
  let inText = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (inText) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) inText = false;
    } else if (byte === QUOTE) inText = true;
    else if (byte === 0x7b || byte === 0x5b) {
      deepest = Math.max(deepest, ++depth);
      heap += OF_COMPOUND;
    } else if (byte === 0x7d || byte === 0x5d) depth--;
    else if (byte === COMMA) heap += OF_PLACE;
    else if (byte === COLON) heap += OF_NAME;
  }
  return { deepest, heap };
}

/** An escape can spell anything; without one, only the plain words can do harm. */
function mayBeHostile(bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return text.includes("\\u") || text.includes("__proto__") || text.includes('"prototype"');
}

function checkWhole(value: unknown): void {
  if (typeof value === "string") checkText(value);
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const item of value) checkWhole(item);
    return;
  }
  for (const [key, item] of Object.entries(value)) {
    if (key === "__proto__" || (key === "constructor" && hasPrototype(item))) throw refused(`it has a key ${key}`);
    checkText(key);
    checkWhole(item);
  }
}

function hasPrototype(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.hasOwn(value, "prototype");
}

function checkText(text: string): void {
  if (text.includes("\u0000")) throw refused("a text holds a NUL character");
  if (!text.isWellFormed()) throw refused("a text holds half of a surrogate pair");
}

function refused(reason: string) {
  return pawlError("invalid_json", { reason });
}
