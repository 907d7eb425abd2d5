/** One of those among whom jobs are divided. */
export interface Part {
  /** virtual time it has had */
  readonly due: number;
  /** virtual time of one more job: what it costs, by weight */
  readonly each: number;
  /** the most it can take */
  readonly room: number;
}

/**
 * Divides so many jobs so that those who have had least come level first, by weight, none beyond its room. What does not
 * come out even goes to whoever is furthest behind, the first ones of equals first. Adds up to `count`, or to all the room.
 */
export function divide(parts: readonly Part[], count: number): number[] {
  if (parts.length === 1) return [Math.min(count, (parts[0] as Part).room)];
  let room = 0;
  for (const part of parts) room += part.room;
  if (room <= count) return parts.map((part) => part.room);
  const level = levelFor(parts, count);
  let left = count;
  const shares = parts.map((part) => {
    const share = Math.floor(fill(part, level));
    left -= share;
    return share;
  });
  return left <= 0 ? shares : giveRest(parts, shares, left);
}

/** The virtual time that all would come to, if jobs could be split. */
function levelFor(parts: readonly Part[], count: number): number {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  let finest = Number.POSITIVE_INFINITY;
  for (const { due, each } of parts) {
    low = Math.min(low, due);
    high = Math.max(high, due + count * each);
    finest = Math.min(finest, each);
  }
  for (let step = 0; step < STEPS && high - low > 1e-9 * finest; step++) {
    const middle = (low + high) / 2;
    let filled = 0;
    for (const part of parts) filled += fill(part, middle);
    if (filled > count) high = middle;
    else low = middle;
  }
  return low;
}

const STEPS = 48;

function fill({ due, each, room }: Part, level: number): number {
  return Math.max(0, Math.min(room, (level - due) / each));
}

function giveRest(parts: readonly Part[], shares: number[], left: number): number[] {
  const next = (index: number) => {
    const { due, each } = parts[index] as Part;
    return due + (shares[index] as number) * each;
  };
  const order = shares.map((_, index) => index).filter((index) => (shares[index] as number) < (parts[index] as Part).room);
  const keys = new Map(order.map((index) => [index, next(index)]));
  order.sort((a, b) => (keys.get(a) as number) - (keys.get(b) as number));
  for (let rest = left; rest > 0; ) {
    const before = rest;
    for (const index of order) {
      if (rest === 0) break;
      if ((shares[index] as number) >= (parts[index] as Part).room) continue;
      shares[index] = (shares[index] as number) + 1;
      rest--;
    }
    if (rest === before) break;
  }
  return shares;
}
