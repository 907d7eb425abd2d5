/** What a class of Unicode costs to compile, beside a single sign. */
const UNICODE_CLASS = 50;

/**
 * How large a pattern is, before it is compiled: its signs, those that are repeated as often as they may be. It is no less than what it
 * compiles to, if it compiles. Repetitions are written out by RE2, so that twenty characters may become a thousand instructions.
 */
export function patternSize(source: string): number {
  const groups = [{ sum: 1, last: 0 }];
  let at = 0;
  while (at < source.length) {
    const group = groups.at(-1) as (typeof groups)[number];
    const [length, size] = atomAt(source, at);
    if (size > 0) {
      group.last = size;
      group.sum += size;
    } else if (source[at] === "(") groups.push({ sum: 2, last: 0 });
    else if (source[at] === ")" && groups.length > 1) {
      groups.pop();
      const outer = groups.at(-1) as typeof group;
      outer.last = group.sum;
      outer.sum += group.sum;
    } else if (source[at] === "{") {
      // Those that may be left out have an instruction more, which asks.
      const more = (group.last + 1) * Math.max(1, timesAt(source, at)) - group.last;
      group.last += more;
      group.sum += more;
    } else {
      // One of `*+?|`, whose own instruction is repeated with what it repeats.
      group.last++;
      group.sum++;
    }
    at += length;
  }
  return groups.reduce((sum, group) => sum + group.sum, 0);
}

/** How long something is that is matched as one, and what it costs; a cost of 0: it is something else. */
function atomAt(source: string, at: number): readonly [length: number, size: number] {
  const sign = source[at] as string;
  if (sign === "\\") return escapeAt(source, at);
  if (sign === "[") return classAt(source, at);
  if (sign === "{") {
    const braces = REPEATED.exec(source.slice(at, at + LONGEST_REPEATED));
    return braces === null ? [1, 1] : [braces[0].length, 0];
  }
  return "()*+?|".includes(sign) ? [1, 0] : [1, 1];
}

const REPEATED = /^\{(\d+)(?:(,)(\d*))?\}/;
const LONGEST_REPEATED = 40;

function timesAt(source: string, at: number): number {
  const [, least, comma, most = ""] = REPEATED.exec(source.slice(at, at + LONGEST_REPEATED)) as RegExpExecArray;
  if (comma === undefined) return Number(least);
  return most === "" ? Number(least) + 1 : Math.max(Number(least), Number(most));
}

function escapeAt(source: string, at: number): readonly [length: number, size: number] {
  const sign = source[at + 1];
  if (sign === "Q") {
    const end = source.indexOf("\\E", at + 2);
    const length = (end === -1 ? source.length : end + 2) - at;
    return [length, length];
  }
  const size = sign === "p" || sign === "P" ? UNICODE_CLASS : 1;
  const braced = sign !== undefined && "pPx".includes(sign) && source[at + 2] === "{" ? source.indexOf("}", at) : -1;
  return [braced === -1 ? 2 : braced + 1 - at, size];
}

/** Up to its bracket, which is no end as the first sign, after a backslash, or in `[:alpha:]`. */
function classAt(source: string, start: number): readonly [length: number, size: number] {
  let at = start + 1;
  let size = 1;
  if (source[at] === "^") at++;
  for (let isFirst = true; at < source.length && (isFirst || source[at] !== "]"); isFirst = false) {
    if (source[at] === "\\") {
      const [length, cost] = escapeAt(source, at);
      at += length;
      if (cost > 1) size += cost;
    } else if (source.startsWith("[:", at) && source.includes(":]", at)) at = source.indexOf(":]", at) + 2;
    else at++;
  }
  // Its signs are read and sorted, too.
  return [at + 1 - start, size + Math.ceil((at - start) / 4)];
}
