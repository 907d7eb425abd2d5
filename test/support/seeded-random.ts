import { randomInt } from "node:crypto";

/** Chance that can be repeated: mulberry32. */
export interface SeededRandom {
  readonly seed: number;
  /** from 0 to 1 */
  random(): number;
  /** a whole number, both ends included */
  between(low: number, high: number): number;
  pick<T>(from: readonly T[]): T;
}

/** The seed is printed, so that a failure can be had again with PAWL_SEED. */
export function seededRandom(what: string, startSeed: number | undefined = seedOfEnvironment()): SeededRandom {
  const seed = startSeed ?? randomInt(2 ** 31);
  console.log(`${what}: seed ${seed}`);
  let state = seed;
  const random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (low: number, high: number) => low + Math.floor(random() * (high - low + 1));
  return { seed, random, between, pick: (from) => from[between(0, from.length - 1)] as (typeof from)[number] };
}

function seedOfEnvironment(): number | undefined {
  const { PAWL_SEED } = process.env;
  return PAWL_SEED === undefined ? undefined : Number(PAWL_SEED);
}
