import type { Took } from "../core/capacity.js";
import { type Lane, laneKey, sameLane } from "../core/lane.js";
import type { ReachedLimit } from "../core/lane-limit.js";
import { type Offered, offer } from "../core/offer.js";
import type { Share } from "../core/share.js";
import type { Clock } from "../runtime/clock.js";
import type { LiveLanes } from "../store/port-lanes.js";
import type { Claimed, ClaimedJob } from "../store/port-leases.js";
import type { PolicyStore } from "../store/port-policies.js";
import { type Cap, Caps } from "./caps.js";
import { LaneBook } from "./lane-book.js";
import { LimitCap } from "./limit-cap.js";
import type { Settings } from "./options.js";
import { timeAhead } from "./pace.js";
import type { Plans } from "./plan.js";
import { PolicyBook } from "./policy-book.js";

/** tenants whose jobs' lengths are told to others */
const MOST_TOLD = 200;
/** lanes without room here that are told to others */
const MOST_SHUT = 20;

export interface OffersParts {
  readonly clock: Clock;
  readonly settings: Settings;
  readonly plans: Plans;
  /** what bounds the jobs of lanes here */
  readonly caps: readonly Cap[];
  /** there may be something to ask for that there was not */
  readonly onOpen: () => void;
}

/**
 * Out of which lanes a claim takes how much. It remembers the lanes that had work, who has had how much of this worker,
 * and what bounds them; it forgets lanes that gave less than they were asked for until a hint or the poll names them.
 */
export class Offers {
  readonly caps: Caps;
  readonly #policies = new PolicyBook();
  readonly #limits: LimitCap;
  readonly #lanes: LaneBook;
  readonly #serves: (lane: Lane) => boolean;

  constructor(private readonly parts: OffersParts) {
    const { clock, plans, settings } = parts;
    this.#limits = new LimitCap(clock, parts.onOpen);
    this.caps = new Caps([...parts.caps, this.#limits]);
    this.#lanes = new LaneBook(this.#policies, clock, (lane) => plans.of(lane)?.atMostOnce === true);
    const serves = servedBy(settings);
    this.#serves = (lane) => serves(lane) && this.caps.serves(lane);
  }

  /** lanes known to have work */
  get lanes(): number {
    return this.#lanes.size;
  }

  /** those of tasks that run at most once */
  get careful(): number {
    return this.#lanes.careful;
  }

  hear(lanes: readonly Lane[], stamp: number): void {
    for (const lane of lanes) if (this.#serves(lane)) this.#lanes.add(lane, stamp);
  }

  async refresh({ lanes: live, mark }: LiveLanes, policies: PolicyStore, since: number): Promise<void> {
    if (await this.#policies.follow(policies, mark)) this.#lanes.arrange();
    const lanes = live.filter(this.#serves);
    this.caps.refreshed(lanes);
    this.#lanes.replace(lanes, since);
  }

  /** What to ask for, with room for it taken: up to so many jobs, of careful and of limited lanes only if they may be asked. */
  next(limit: number, may: { readonly careful: boolean; readonly limited: boolean }): readonly Offered[] {
    const { clock, settings, plans } = this.parts;
    const cap = (lane: Lane): number => {
      const plan = plans.of(lane);
      if (plan === undefined || (plan.atMostOnce && !may.careful) || (!may.limited && this.isLimited(lane))) return 0;
      // By the pace of the task itself: quick jobs of one must not make room for slow ones of another.
      const soon = settings.concurrency + plan.pace.ahead(settings.concurrency) - plan.pace.inHand;
      return Math.max(0, Math.min(soon, limit, this.caps.room(lane)));
    };
    const portion = { jobs: this.#lanes.portion, within: timeAhead(settings.concurrency) };
    const offered = this.caps.reserve(offer(this.#lanes.root, this.#lanes.next(cap), limit, clock.monotonic(), portion));
    this.#lanes.asked(offered);
    this.#count(offered, 1);
    return offered;
  }

  /** The claim has come back, or never will: what was taken for it is free. The jobs that came are counted one by one. */
  landed(offered: readonly Offered[]): void {
    this.caps.unreserve(offered);
    this.#count(offered, -1);
  }

  /** A claim of so many lanes, for up to so many jobs, brought some: by that the next one asks more lanes or fewer, each for fewer jobs or more. */
  brought(lanes: number, limit: number, jobs: number): void {
    this.#lanes.brought(lanes, limit, jobs);
  }

  /**
   * A lane that gave less than its quota, in a claim that was not full, has nothing left, unless a limit kept it back or the
   * store says so. Answers whether any may have more.
   */
  gave(offered: readonly Offered[], claimed: Claimed | undefined, stamp: number): boolean {
    const jobs = claimed?.jobs ?? [];
    const unsure = new Set((claimed?.more ?? []).map(laneKey));
    const mayHaveMore = (lane: Lane) => unsure.size > 0 && unsure.has(laneKey(lane));
    let more = unsure.size > 0;
    let next = 0;
    for (const { lane, quota } of offered) {
      // Jobs come lane by lane, in the order these were offered.
      const first = next;
      while (next < jobs.length && sameLane((jobs[next] as ClaimedJob).lane, lane)) next++;
      if (next - first >= quota) more = true;
      else if (!mayHaveMore(lane) && this.#limits.room(lane) > 0) this.#lanes.forget(lane, stamp);
    }
    return more;
  }

  /** These limits kept back some of what was asked for. */
  reached(limits: readonly ReachedLimit[]): void {
    this.#limits.reached(limits);
  }

  /** Whether a claim of it must count slots and tokens of its queue, task or tenant. */
  isLimited(lane: Lane): boolean {
    return this.#policies.isLimited(lane);
  }

  /** Who is charged for the time of a lane's jobs. */
  shareOf(lane: Lane): Share {
    return this.#lanes.shareOf(lane);
  }

  /** How long jobs of those who share this worker take lately. */
  took(): readonly Took[] | undefined {
    return this.#lanes.took(MOST_TOLD);
  }

  /** Lanes with work of which it can take nothing now, though it may have free slots: some of them. */
  shut(): readonly Lane[] {
    if (this.parts.caps.every(({ ofAll }) => ofAll === true)) return [];
    const shut: Lane[] = [];
    for (const lane of this.#lanes.lanes()) {
      if (shut.length === MOST_SHUT) break;
      if (this.caps.shuts(lane)) shut.push(lane);
    }
    return shut;
  }

  /** The store knows that a job of the lane is over: what it held of limits is free. Whether that matters. */
  settled(lane: Lane): boolean {
    return this.#limits.settled(lane);
  }

  stop(): void {
    this.#limits.stop();
  }

  #count(offered: readonly Offered[], sign: 1 | -1): void {
    for (const { lane, quota, share } of offered) {
      share.ask(sign * quota);
      const plan = this.parts.plans.of(lane);
      if (plan !== undefined) plan.pace.inHand += sign * quota;
    }
  }
}

function servedBy({ queues, tasks, bands, tenants }: Settings): (lane: Lane) => boolean {
  const [ofQueues, ofTasks, ofBands, ofTenants] = [queues, tasks, bands, tenants].map((some) => some && new Set<unknown>(some));
  return ({ queue, task, band, tenant }) =>
    ofTasks?.has(task) !== false && ofQueues?.has(queue) !== false && ofBands?.has(band) !== false && ofTenants?.has(tenant) !== false;
}
