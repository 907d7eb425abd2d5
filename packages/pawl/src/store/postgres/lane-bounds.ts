import { compareLanes, type Lane, type LaneKey, laneKey } from "../../core/lane.js";
import { type Horizon, SafePoint } from "./safe-point.js";

/**
 * Numbers of the front of a lane, where jobs are that waited at a gate, begin here and stay below zero; those of all others
 * are above it. Both are drawn from one sequence, so that one safe point serves both.
 */
export const FRONT = -(2 ** 52);

/** What this process knows of one lane. */
interface Entry {
  readonly lane: Lane;
  /** Nothing live is below it: the smaller of the smallest visible seq and the safe point when it was seen. */
  bound: number;
  /** One past the last seq claimed here: where the next live row most likely is. Never relied upon to say "empty". */
  hint: number;
  /** when `bound` was last used for a claim, so that stragglers below `hint` are found */
  sweptAt: number;
  live: boolean;
  /** the bound of its front */
  front: number;
  /** it may have jobs at its front that nobody was sent for */
  fronted: boolean;
  /** its last claim took from the front: the next one takes from the rest */
  restsTurn: boolean;
  /** when the lane was last seen live, or gave jobs */
  seenAt: number;
  /** jobs claimed of it here */
  jobs: number;
}

/** The smallest visible seq of a lane, and the smallest of its front. */
export interface Head {
  readonly seq: number | undefined;
  readonly front: number | undefined;
}
/** Where to claim from. */
export interface From {
  readonly seq: number;
  /** nothing of the lane is below; otherwise something may be, seen by the next sweep */
  readonly sure: boolean;
  /** where its front begins, if that is to be asked */
  readonly front: number | undefined;
  /** its front is passed over this time, and may have jobs */
  readonly passed: boolean;
}
export interface FreshLane {
  readonly lane: Lane;
  /** it has a front */
  readonly front: boolean;
}

/** ms between claims of one lane from its bound instead of its hint */
const SWEEP = 250;
const MOST_SEEN = 100_000;
/** ms an empty lane is remembered, so that its dead rows are not walked in search of new lanes */
const REMEMBER = 60_000;
/** Empty lanes remembered: a look asks for each. Thousands that held a job each leave next to nothing to be walked. */
const MOST_EMPTY = 500;
/** Lanes remembered because their fronts were heard of. Of those beyond it the look for work tells. */
const MOST_HEARD = 10_000;

/**
 * The lanes of this store with a lower bound each, so that no claim ever scans from the beginning: dead rows pile up
 * there whenever some transaction pins the horizon, and walking them is what makes queues in Postgres collapse.
 * Private to this process; losing it costs one slow scan.
 */
export class LaneBounds {
  readonly #entries = new Map<LaneKey, Entry>();
  readonly #seen = new Map<Lane, Entry>();
  #safe = new SafePoint();
  constructor(readonly monotonic: () => number) {}

  from(lane: Lane, now: number): From {
    const entry = this.#find(lane) ?? this.#enter(lane);
    const passed = entry.fronted && entry.restsTurn;
    const front = entry.fronted && !passed ? entry.front : undefined;
    // One claim is sent for the front at a time; what is heard of meanwhile is for the next.
    if (front !== undefined) entry.fronted = false;
    entry.restsTurn = false;
    const sure = !(entry.hint > entry.bound && now - entry.sweptAt < SWEEP);
    if (sure) entry.sweptAt = now;
    return { seq: sure ? entry.bound : entry.hint, sure, front, passed };
  }

  /** Below it nothing of the lane is left; changes nothing. */
  boundOf(lane: Lane): number {
    return this.#entries.get(laneKey(lane))?.bound ?? 0;
  }

  /** The same of its front. */
  frontOf(lane: Lane): number {
    return this.#entries.get(laneKey(lane))?.front ?? FRONT;
  }

  /** Jobs that waited are ready at its front. (Who never looks forgets nothing, so there is an end to it.) */
  fronted(lane: Lane): void {
    const entry = this.#find(lane) ?? (this.#entries.size < MOST_HEARD ? this.#enter(lane) : undefined);
    if (entry !== undefined) entry.fronted = true;
  }

  /** What a claim took from its front, and whether there may be more. */
  frontGave(lane: Lane, { count, more }: { readonly count: number; readonly more: boolean }): void {
    const entry = this.#find(lane);
    if (entry === undefined) return;
    entry.restsTurn = count > 0;
    entry.fronted ||= more;
  }

  /** The last seq a claim took, in order: what is left begins behind it, above or below what other claims took. */
  claimed(lane: Lane, seq: number, jobs: number, now: number): void {
    const entry = this.#find(lane);
    if (entry === undefined) return;
    entry.hint = seq + 1;
    entry.seenAt = now;
    entry.jobs += jobs;
  }

  /** New rows may be anywhere from the bound on. (One that is not known has none: who never claims remembers nothing.) */
  wake(lane: Lane): void {
    const entry = this.#entries.get(laneKey(lane));
    if (entry === undefined) return;
    entry.sweptAt = Number.NEGATIVE_INFINITY;
  }

  /** Every remembered lane in order, with the bounds to look from. */
  known(): readonly { readonly lane: Lane; readonly bound: number; readonly front: number; readonly live: boolean }[] {
    return [...this.#entries.values()].sort((a, b) => compareLanes(a.lane, b.lane));
  }

  /** Of numbers up to this one all that will ever be seen was seen by a look. */
  get seenUpTo(): number {
    return this.#safe.value;
  }

  /** What a look at the table found: the head of each known lane (undefined: it is empty), and new lanes. */
  saw(found: {
    readonly heads: readonly (Head | undefined)[];
    readonly known: readonly { readonly lane: Lane }[];
    readonly fresh: readonly FreshLane[];
    readonly seq: number;
    readonly horizon: Horizon;
  }): void {
    const safe = this.#safe.observe(found.seq, found.horizon);
    const now = this.monotonic();
    const empty: Entry[] = [];
    found.known.forEach(({ lane }, index) => {
      const entry = this.#entries.get(laneKey(lane));
      if (entry === undefined) return;
      const head = found.heads[index];
      entry.live = head?.seq !== undefined || head?.front !== undefined;
      if (entry.live) entry.seenAt = now;
      else if (!entry.fronted) empty.push(entry);
      entry.bound = Math.max(entry.bound, Math.min(head?.seq ?? safe, safe));
      entry.front = Math.max(entry.front, Math.min(head?.front ?? FRONT + safe, FRONT + safe));
      if (head?.front !== undefined) entry.fronted = true;
    });
    this.#forgetSome(empty, now);
    for (const { lane, front } of found.fresh) Object.assign(this.#enter(lane), { live: true, fronted: front });
  }

  /** Of empty lanes those are kept that were live of late, and of many the ones that most jobs went through. */
  #forgetSome(empty: readonly Entry[], now: number): void {
    const recent = empty.filter(({ seenAt }) => now - seenAt <= REMEMBER);
    const kept = new Set(recent.length <= MOST_EMPTY ? recent : recent.sort((a, b) => b.jobs - a.jobs).slice(0, MOST_EMPTY));
    if (kept.size === empty.length) return;
    for (const entry of empty) if (!kept.has(entry)) this.#entries.delete(laneKey(entry.lane));
    this.#seen.clear();
  }

  /** Claims name the same lanes again and again, by the same objects: told apart by those, their names need not be read. */
  #find(lane: Lane): Entry | undefined {
    const seen = this.#seen.get(lane);
    if (seen !== undefined) return seen;
    const entry = this.#entries.get(laneKey(lane));
    if (entry !== undefined) {
      if (this.#seen.size >= MOST_SEEN) this.#seen.clear();
      this.#seen.set(lane, entry);
    }
    return entry;
  }

  /** Another server answers, which may lack what the last one had: what was gone can be there again. */
  forget(): void {
    this.#safe = new SafePoint();
    this.#entries.clear();
    this.#seen.clear();
  }

  live(): readonly Lane[] {
    return this.known().flatMap(({ lane, live }) => (live ? [lane] : []));
  }

  /** A lane new to this process may hold rows of any age: its first look is from the beginning. */
  #enter(lane: Lane): Entry {
    const key = laneKey(lane);
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = {
        lane,
        bound: 0,
        hint: 0,
        sweptAt: Number.NEGATIVE_INFINITY,
        live: false,
        front: FRONT,
        fronted: false,
        restsTurn: false,
        seenAt: this.monotonic(),
        jobs: 0,
      };
      this.#entries.set(key, entry);
    }
    return entry;
  }
}
