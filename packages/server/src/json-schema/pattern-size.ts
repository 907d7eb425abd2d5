/** What a class of Unicode costs to compile, beside a single sign. */
const UNICODE_CLASS = 50;
/** Where upper and lower case are the same, each sign of a range is looked up: so many of them cost as much as a single sign. */
const FOLDED = 150;
const LAST_CODE_POINT = 0x10ffff;

/**
 * How large a pattern is, before it is compiled: its signs, those that are repeated as often as they may be. It is no less than what it
 * compiles to, if it compiles. Repetitions are written out by RE2, so that twenty characters may become a thousand instructions.
 */
export function patternSize(source: string): number {
  const folds = FOLDS.test(source);
  const groups = [{ sum: 1, last: 0 }];
  let at = 0;
  while (at < source.length) {
    const group = groups.at(-1) as (typeof groups)[number];
    const [length, size] = atomAt(source, at, folds);
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

/** Somewhere in the pattern; where it ends is not looked for. */
const FOLDS = /\(\?[a-zA-Z-]*i/;

/** How long something is that is matched as one, and what it costs; a cost of 0: it is something else. */
function atomAt(source: string, at: number, folds: boolean): readonly [length: number, size: number] {
  const sign = source[at] as string;
  if (sign === "\\") return escapeAt(source, at);
  if (sign === "[") return classAt(source, at, folds);
  if (sign === "{") {
    const braces = REPETITION.exec(source.slice(at, at + MAX_REPETITION_CHARACTERS));
    return braces === null ? [1, 1] : [braces[0].length, 0];
  }
  return "()*+?|".includes(sign) ? [1, 0] : [1, 1];
}

const REPETITION = /^\{(\d+)(?:(,)(\d*))?\}/;
const MAX_REPETITION_CHARACTERS = 40;

function timesAt(source: string, at: number): number {
  const [, min, comma, max = ""] = REPETITION.exec(source.slice(at, at + MAX_REPETITION_CHARACTERS)) as RegExpExecArray;
  if (comma === undefined) return Number(min);
  return max === "" ? Number(min) + 1 : Math.max(Number(min), Number(max));
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
function classAt(source: string, start: number, folds: boolean): readonly [length: number, size: number] {
  let at = start + 1;
  let size = 1;
  if (source[at] === "^") at++;
  /** the last two: a sign, a hyphen and a sign may be a range */
  let before: ClassSign | undefined;
  let last: ClassSign | undefined;
  for (let isFirst = true; at < source.length && (isFirst || source[at] !== "]"); isFirst = false) {
    if (source.startsWith("[:", at) && source.includes(":]", at)) {
      at = source.indexOf(":]", at) + 2;
      before = last = undefined;
      continue;
    }
    const [sign, cost] = signAt(source, at);
    if (cost > 1) size += cost;
    if (folds && last === HYPHEN && before !== undefined) size += Math.ceil(Math.max(0, sign.max - before.min) / FOLDED);
    [before, last] = [last, sign];
    at += sign.length;
  }
  // Its signs are read and sorted, too.
  return [at + 1 - start, size + Math.ceil((at - start) / 4)];
}

/** What stands for a sign in a class, and which it may be. */
interface ClassSign {
  readonly length: number;
  readonly min: number;
  readonly max: number;
}

const HYPHEN: ClassSign = { length: 1, min: 0x2d, max: 0x2d };

/** With what it costs. Of signs that are written by number, the common way is read. */
function signAt(source: string, at: number): readonly [sign: ClassSign, cost: number] {
  if (source[at] === "-") return [HYPHEN, 1];
  const code = source.codePointAt(at) as number;
  if (source[at] !== "\\") return [{ length: code > 0xffff ? 2 : 1, min: code, max: code }, 1];
  const [length, cost] = escapeAt(source, at);
  const written = source.slice(at, at + length);
  const hexadecimal = /^\\x\{([0-9a-fA-F]{1,6})\}$/.exec(written)?.[1];
  if (hexadecimal !== undefined) {
    const sign = Math.min(Number.parseInt(hexadecimal, 16), LAST_CODE_POINT);
    return [{ length, min: sign, max: sign }, cost];
  }
  const itself = /^\\[^0-9a-zA-Z]/.test(written) ? (written.codePointAt(1) as number) : undefined;
  return [{ length, min: itself ?? 0, max: itself ?? (written.includes("{") ? LAST_CODE_POINT : 0x1ff) }, cost];
}
