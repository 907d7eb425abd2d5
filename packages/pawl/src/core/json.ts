/**
 * What can be stored: JSON that reads back as it was written, in every store and every language.
 * Postgres cannot hold NUL in text, and lone surrogates are no UTF-8, so both are refused at the edge.
 */
export type Encoded = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly reason: string };

export function encode(value: unknown): Encoded {
  let text: string | undefined;
  try {
    text = JSON.stringify(value, refuseWhatJsonWouldLose);
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? (error.message.split("\n")[0] ?? "it throws") : "it throws" };
  }
  if (text === undefined) return value === undefined ? { ok: true, text: "null" } : { ok: false, reason: `a ${typeof value} is not JSON` };
  // JSON.stringify writes NUL and lone surrogates as escapes: looking for the escapes is one fast scan.
  const escape = UNSTORABLE.exec(text);
  if (escape !== null && isRealEscape(text, escape.index)) {
    return { ok: false, reason: escape[0] === "\\u0000" ? "a text holds a NUL character" : "a text holds half of a surrogate pair" };
  }
  if (escape !== null && holdsUnstorable(text)) return { ok: false, reason: "a text holds a NUL character or half of a surrogate pair" };
  return { ok: true, text };
}

const UNSTORABLE = /\\u(?:0000|d[89ab][0-9a-f]{2}|d[c-f][0-9a-f]{2})/;

/** An even number of backslashes before it means that the backslash itself is escaped: plain text that looks like an escape. */
function isRealEscape(text: string, at: number): boolean {
  let backslashes = 0;
  while (text[at - 1 - backslashes] === "\\") backslashes++;
  return backslashes % 2 === 0;
}

function holdsUnstorable(text: string): boolean {
  for (const match of text.matchAll(new RegExp(UNSTORABLE, "g"))) if (isRealEscape(text, match.index)) return true;
  return false;
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
      return value;
  }
}

export function decode(text: string): unknown {
  return JSON.parse(text);
}
