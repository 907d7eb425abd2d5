import { compareLanes, type Lane, type LaneKey, laneKey } from "../../../core/jobs/lane.js";
import { ADMITTED_SECTION_START } from "../connection/sql-constants.js";
import { SafeSequence, type SnapshotHorizon } from "./safe-sequence.js";

/** What this process knows of one lane. */
interface LaneStart {
  readonly lane: Lane;
  /** Nothing live is below it: the smaller of the smallest visible seq and the safe sequence when it was seen. */
  bound: number;
  /** One past the last seq claimed here: where the next live row most likely is. Never relied upon to say "empty". */
  likelySeq: number;
  /** when `bound` was last used for a claim, so that stragglers below `likelySeq` are found */
  sweptAt: number;
  live: boolean;
  /** the bound of its admitted section */
  admittedBound: number;
  /** it may have jobs in its admitted section that nobody was sent for */
  hasAdmitted: boolean;
  /** its last claim took from the admitted section: the next one takes from the rest */
  restIsNext: boolean;
  /** when the lane was last seen live, or gave jobs */
  seenAt: number;
  /** jobs claimed of it here */
  jobs: number;
}

/** The smallest visible seq of a lane, and the smallest of its admitted section. */
export interface LaneHead {
  readonly seq: number | undefined;
  readonly admittedSeq: number | undefined;
}
/** Where to claim from. */
export interface ClaimStart {
  readonly seq: number;
  /** nothing of the lane is below; otherwise something may be, seen by the next sweep */
  readonly sure: boolean;
  /** where its admitted section begins, if that is to be asked */
  readonly admittedFrom: number | undefined;
  /** its admitted section is passed over this time, and may have jobs */
  readonly admittedSkipped: boolean;
}
export interface NewLane {
  readonly lane: Lane;
  /** it has an admitted section */
  readonly hasAdmitted: boolean;
}

/** ms between claims of one lane from its bound instead of `likelySeq` */
const SWEEP_MS = 250;
const MAX_LANE_OBJECTS = 100_000;
/** ms an empty lane is remembered, so that its dead rows are not walked in search of new lanes */
const REMEMBER_EMPTY_MS = 60_000;
/** Empty lanes remembered: a look asks for each. Thousands that held a job each leave next to nothing to be walked. */
const MAX_EMPTY_LANES = 500;
/** Lanes remembered because their admitted sections were heard of. Of those beyond it the look for work tells. */
const MAX_ANNOUNCED_LANES = 10_000;

/**
 * The lanes of this store with a lower bound each, so that no claim ever scans from the beginning: dead rows pile up
 * there whenever some transaction pins the horizon, and walking them is what makes queues in Postgres collapse.
 * Private to this process; losing it costs one slow scan.
 */
export class LaneStarts {
  readonly #byKey = new Map<LaneKey, LaneStart>();
  readonly #byObject = new Map<Lane, LaneStart>();
  #safe = new SafeSequence();
  constructor(readonly monotonic: () => number) {}

  from(lane: Lane, now: number): ClaimStart {
    const entry = this.#find(lane) ?? this.#add(lane);
    const passed = entry.hasAdmitted && entry.restIsNext;
    const admittedSection = entry.hasAdmitted && !passed ? entry.admittedBound : undefined;
    // One claim is sent for the admitted section at a time; what is heard of meanwhile is for the next.
    if (admittedSection !== undefined) entry.hasAdmitted = false;
    entry.restIsNext = false;
    const sure = !(entry.likelySeq > entry.bound && now - entry.sweptAt < SWEEP_MS);
    if (sure) entry.sweptAt = now;
    return { seq: sure ? entry.bound : entry.likelySeq, sure, admittedFrom: admittedSection, admittedSkipped: passed };
  }

  /** Below it nothing of the lane is left; changes nothing. */
  boundOf(lane: Lane): number {
    return this.#byKey.get(laneKey(lane))?.bound ?? 0;
  }

  /** The same of its admitted section. */
  admittedBoundOf(lane: Lane): number {
    return this.#byKey.get(laneKey(lane))?.admittedBound ?? ADMITTED_SECTION_START;
  }

  /** Jobs that waited are ready in its admitted section. (Who never looks forgets nothing, so there is an end to it.) */
  admittedArrived(lane: Lane): void {
    const entry = this.#find(lane) ?? (this.#byKey.size < MAX_ANNOUNCED_LANES ? this.#add(lane) : undefined);
    if (entry !== undefined) entry.hasAdmitted = true;
  }

  /** What a claim took from its admitted section, and whether there may be more. */
  admittedClaimed(lane: Lane, { count, more }: { readonly count: number; readonly more: boolean }): void {
    const entry = this.#find(lane);
    if (entry === undefined) return;
    entry.restIsNext = count > 0;
    entry.hasAdmitted ||= more;
  }

  /** The last seq a claim took, in order: what is left begins behind it, above or below what other claims took. */
  claimed(lane: Lane, seq: number, jobs: number, now: number): void {
    const entry = this.#find(lane);
    if (entry === undefined) return;
    entry.likelySeq = seq + 1;
    entry.seenAt = now;
    entry.jobs += jobs;
  }

  /** New rows may be anywhere from the bound on. (One that is not known has none: who never claims remembers nothing.) */
  sweepNext(lane: Lane): void {
    const entry = this.#byKey.get(laneKey(lane));
    if (entry === undefined) return;
    entry.sweptAt = Number.NEGATIVE_INFINITY;
  }

  /** Every remembered lane in order, with the bounds to look from. */
  list(): readonly { readonly lane: Lane; readonly bound: number; readonly admittedBound: number; readonly live: boolean }[] {
    return [...this.#byKey.values()].sort((a, b) => compareLanes(a.lane, b.lane));
  }

  /** Of numbers up to this one all that will ever be seen was seen by a look. */
  get seenUpTo(): number {
    return this.#safe.value;
  }

  /** What a look at the table found: the head of each known lane (undefined: it is empty), and new lanes. */
  observe(found: {
    readonly heads: readonly (LaneHead | undefined)[];
    readonly listed: readonly { readonly lane: Lane }[];
    readonly newLanes: readonly NewLane[];
    readonly seq: number;
    readonly horizon: SnapshotHorizon;
  }): void {
    const safe = this.#safe.observe(found.seq, found.horizon);
    const now = this.monotonic();
    const empty: LaneStart[] = [];
    found.listed.forEach(({ lane }, index) => {
      const entry = this.#byKey.get(laneKey(lane));
      if (entry === undefined) return;
      const head = found.heads[index];
      entry.live = head?.seq !== undefined || head?.admittedSeq !== undefined;
      if (entry.live) entry.seenAt = now;
      else if (!entry.hasAdmitted) empty.push(entry);
      entry.bound = Math.max(entry.bound, Math.min(head?.seq ?? safe, safe));
      entry.admittedBound = Math.max(
        entry.admittedBound,
        Math.min(head?.admittedSeq ?? ADMITTED_SECTION_START + safe, ADMITTED_SECTION_START + safe),
      );
      if (head?.admittedSeq !== undefined) entry.hasAdmitted = true;
    });
    this.#forgetSome(empty, now);
    for (const { lane, hasAdmitted } of found.newLanes) Object.assign(this.#add(lane), { live: true, hasAdmitted });
  }

  /** Of empty lanes those are kept that were live of late, and of many the ones that most jobs went through. */
  #forgetSome(empty: readonly LaneStart[], now: number): void {
    const recent = empty.filter(({ seenAt }) => now - seenAt <= REMEMBER_EMPTY_MS);
    const kept = new Set(recent.length <= MAX_EMPTY_LANES ? recent : recent.sort((a, b) => b.jobs - a.jobs).slice(0, MAX_EMPTY_LANES));
    if (kept.size === empty.length) return;
    for (const entry of empty) if (!kept.has(entry)) this.#byKey.delete(laneKey(entry.lane));
    this.#byObject.clear();
  }

  /** Claims name the same lanes again and again, by the same objects: told apart by those, their names need not be read. */
  #find(lane: Lane): LaneStart | undefined {
    const byObject = this.#byObject.get(lane);
    if (byObject !== undefined) return byObject;
    const entry = this.#byKey.get(laneKey(lane));
    if (entry !== undefined) {
      if (this.#byObject.size >= MAX_LANE_OBJECTS) this.#byObject.clear();
      this.#byObject.set(lane, entry);
    }
    return entry;
  }

  /** Another server answers, which may lack what the last one had: what was gone can be there again. */
  forget(): void {
    this.#safe = new SafeSequence();
    this.#byKey.clear();
    this.#byObject.clear();
  }

  live(): readonly Lane[] {
    return this.list().flatMap(({ lane, live }) => (live ? [lane] : []));
  }

  /** A lane new to this process may hold rows of any age: its first look is from the beginning. */
  #add(lane: Lane): LaneStart {
    const key = laneKey(lane);
    let entry = this.#byKey.get(key);
    if (entry === undefined) {
      entry = {
        lane,
        bound: 0,
        likelySeq: 0,
        sweptAt: Number.NEGATIVE_INFINITY,
        live: false,
        admittedBound: ADMITTED_SECTION_START,
        hasAdmitted: false,
        restIsNext: false,
        seenAt: this.monotonic(),
        jobs: 0,
      };
      this.#byKey.set(key, entry);
    }
    return entry;
  }
}
