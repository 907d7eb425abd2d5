/** One of those among whom jobs are divided. */
export interface Sharer {
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
export function divide(sharers: readonly Sharer[], count: number): number[] {
  if (sharers.length === 1) return [Math.min(count, (sharers[0] as Sharer).room)];
  let room = 0;
  for (const sharer of sharers) room += sharer.room;
  if (room <= count) return sharers.map((sharer) => sharer.room);
  const level = levelFor(sharers, count);
  let left = count;
  const shares = sharers.map((sharer) => {
    const share = Math.floor(fill(sharer, level));
    left -= share;
    return share;
  });
  return left <= 0 ? shares : giveRest(sharers, shares, left);
}

/** The virtual time that all would come to, if jobs could be split. */
function levelFor(sharers: readonly Sharer[], count: number): number {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  let finest = Number.POSITIVE_INFINITY;
  for (const { due, each } of sharers) {
    low = Math.min(low, due);
    high = Math.max(high, due + count * each);
    finest = Math.min(finest, each);
  }
  for (let step = 0; step < STEPS && high - low > 1e-9 * finest; step++) {
    const middle = (low + high) / 2;
    let filled = 0;
    for (const sharer of sharers) filled += fill(sharer, middle);
    if (filled > count) high = middle;
    else low = middle;
  }
  return low;
}

const STEPS = 48;

function fill({ due, each, room }: Sharer, level: number): number {
  return Math.max(0, Math.min(room, (level - due) / each));
}

function giveRest(sharers: readonly Sharer[], shares: number[], left: number): number[] {
  const next = (index: number) => {
    const { due, each } = sharers[index] as Sharer;
    return due + (shares[index] as number) * each;
  };
  const order = shares.map((_, index) => index).filter((index) => (shares[index] as number) < (sharers[index] as Sharer).room);
  const keys = new Map(order.map((index) => [index, next(index)]));
  order.sort((a, b) => (keys.get(a) as number) - (keys.get(b) as number));
  for (let rest = left; rest > 0; ) {
    const before = rest;
    for (const index of order) {
      if (rest === 0) break;
      if ((shares[index] as number) >= (sharers[index] as Sharer).room) continue;
      shares[index] = (shares[index] as number) + 1;
      rest--;
    }
    if (rest === before) break;
  }
  return shares;
}
