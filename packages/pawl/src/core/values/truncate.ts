/** Texts of any length, made to fit their bound. What is cut says so: a text that ends too early for no reason misleads its reader. */

/** The text, or its beginning and how much is missing: at most `most` characters, and nothing that a store cannot hold. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return storable(text);
  const room = Math.max(0, most - missing(text.length).length);
  return storable(text.slice(0, room) + missing(text.length - room).slice(0, most));
}

/** Encoded JSON, or a JSON text that holds its beginning and says how much is missing: at most `most` bytes. */
export function cutJson(encoded: string, most: number): string {
  const size = Buffer.byteLength(encoded);
  if (size <= most) return encoded;
  let begin = encoded.slice(0, most);
  for (;;) {
    const text = JSON.stringify(begin.toWellFormed() + missing(encoded.length - begin.length));
    const taken = Buffer.byteLength(text);
    if (taken <= most || begin === "") return text;
    // Quotes and other alphabets take more than a byte for each character: a few steps by the share that fits come close.
    begin = begin.slice(0, Math.min(begin.length - 1, Math.floor((begin.length * most) / taken)));
  }
}

function missing(count: number): string {
  return `… (${count} more characters were cut)`;
}

/** Postgres has no NUL in text, and half of a surrogate pair is no UTF-8. */
function storable(text: string): string {
  return text.replaceAll("\u0000", "\ufffd").toWellFormed();
}
