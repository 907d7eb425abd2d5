import type { Took } from "../core/capacity.js";
import type { Priority } from "../core/job.js";
import { type Lane, type LaneKey, laneKey } from "../core/lane.js";
import type { LaneCap, Offered, OpenBand, OpenLane, OpenQueues, OpenTenant } from "../core/offer.js";
import { Share } from "../core/share.js";
import type { PolicyBook } from "./policy-book.js";
import { Ring } from "./ring.js";

interface Known {
  readonly key: LaneKey;
  readonly lane: Lane;
  readonly queues: Queues;
  readonly tenant: Tenant;
  /** when it was last said to have work, in the claimer's own count */
  stamp: number;
  /** its place among its tenant's lanes */
  place: number;
  /** since when its head waits to be asked for, monotonic */
  since: number;
}

interface Tenant {
  readonly share: Share;
  readonly lanes: Ring<Known>;
  /** its place in its band's ring, while it has lanes */
  place: number;
}

interface Band {
  readonly share: Share;
  readonly tenants: Map<string, Tenant>;
  readonly ring: Ring<Tenant>;
}

interface Queues {
  readonly name: string;
  readonly share: Share;
  readonly bands: Map<Priority, Band>;
  /** by how long their heads have waited, the longest first; kept only where that matters */
  readonly waiting: Map<LaneKey, Known>;
}

/** Tenants, and lanes, of a band looked at by one claim: a claim takes hundreds of jobs, so thousands come in turn. */
const WINDOW = 128;
/** The same while lanes have a few jobs each. */
const WIDEST = 256;
/** Jobs of a tenant from which on more at a time would save nothing. */
const LARGEST_PORTION = 64;
/** Tenants of a band whose time is remembered though they have no work. */
const MOST_REMEMBERED = 10_000;

/**
 * The lanes known to have work, and what those who share this worker have had of it. What is not known costs nothing: a
 * hint or the poll brings it. Lanes come by tenant, so that a tenant of fifty lanes has one place in the line.
 */
export class LaneBook {
  readonly root = new Share(undefined);
  /** lanes that may be asked for only with care */
  careful = 0;
  readonly #known = new Map<LaneKey, Known>();
  /** by the very object that `next` gave out, which costs no key to be made */
  readonly #given = new Map<Lane, Known>();
  readonly #queues = new Map<string, Queues>();
  #window = WINDOW;
  #portion = 0;

  constructor(
    private readonly policies: PolicyBook,
    private readonly clock: { monotonic(): number; random(): number },
    private readonly isCareful: (lane: Lane) => boolean = () => false,
  ) {}

  get size(): number {
    return this.#known.size;
  }

  /** tenants whose time is known */
  get remembered(): number {
    let count = 0;
    for (const { bands } of this.#queues.values()) for (const { tenants } of bands.values()) count += tenants.size;
    return count;
  }

  /** Those that are known to have work. */
  *lanes(): Generator<Lane> {
    for (const { lane } of this.#known.values()) yield lane;
  }

  /** ms that jobs of tenants with work took lately, of up to so many of them; nothing while there is nobody to compare with. */
  took(most: number): readonly Took[] | undefined {
    const took = new Map<string, number>();
    for (const { bands } of this.#queues.values()) {
      for (const { tenants } of bands.values()) {
        for (const [name, { share, lanes }] of tenants) {
          if (lanes.size > 0 && share.took !== undefined && took.size < most) took.set(name, share.took);
        }
      }
    }
    return took.size < 2 ? undefined : [...took];
  }

  add(lane: Lane, stamp: number): void {
    const key = laneKey(lane);
    const known = this.#known.get(key);
    if (known !== undefined) {
      known.stamp = stamp;
      return;
    }
    const queues = this.#queuesOf(lane);
    const band = bandOf(queues, lane);
    const tenant = this.#tenantOf(band, lane);
    const entry: Known = { key, lane, queues, tenant, stamp, place: 0, since: this.clock.monotonic() };
    tenant.lanes.add(entry);
    if (tenant.lanes.size === 1) {
      band.ring.add(tenant);
      // Where they begin is left to chance, so that workers that start together do not go round together.
      if (band.ring.size === 2) band.ring.spin(this.clock.random());
    }
    this.#known.set(key, entry);
    this.#given.set(lane, entry);
    if (this.isCareful(lane)) this.careful++;
    this.#await(entry);
  }

  /** Forgets a lane that gave nothing, unless it was said to have work after `since`. */
  forget(lane: Lane, since: number): void {
    const known = this.#given.get(lane) ?? this.#known.get(laneKey(lane));
    if (known === undefined || known.stamp > since) return;
    this.#known.delete(known.key);
    this.#given.delete(known.lane);
    if (this.careful > 0 && this.isCareful(lane)) this.careful--;
    if (known.queues.waiting.size > 0) known.queues.waiting.delete(known.key);
    known.tenant.lanes.remove(known);
    if (known.tenant.lanes.size === 0) bandOf(known.queues, lane).ring.remove(known.tenant);
  }

  /** Jobs that are worth asking a tenant for at a time. (Counted by lane: most tenants have one.) */
  get portion(): number {
    return this.#portion;
  }

  /** Takes over a fresh list; lanes hinted at since it was asked for stay. */
  replace(lanes: readonly Lane[], since: number): void {
    const fresh = new Set(lanes.map(laneKey));
    for (const [key, { lane }] of this.#known) if (!fresh.has(key)) this.forget(lane, since);
    for (const lane of lanes) if (!this.#known.has(laneKey(lane))) this.add(lane, since);
    this.#tidy();
  }

  /** Policies have changed: weights take effect, and lanes come under the rules of their queues. */
  arrange(): void {
    const all = [...this.#known.values()];
    if (all.some(({ lane }) => !this.#queues.has(this.#nameFor(lane)))) {
      // Lanes have moved from one set of rules to another: everybody begins anew.
      this.#known.clear();
      this.#given.clear();
      this.careful = 0;
      this.#queues.clear();
      for (const { lane, stamp } of all) this.add(lane, stamp);
      return;
    }
    for (const queues of this.#queues.values()) {
      for (const { tenants } of queues.bands.values()) for (const [name, { share }] of tenants) share.weight = this.policies.weightOf(name);
      queues.waiting.clear();
    }
    for (const known of all.sort((a, b) => a.since - b.since)) this.#await(known);
  }

  /** Who is charged for jobs of the lane. */
  shareOf(lane: Lane): Share {
    return this.#tenantOf(bandOf(this.#queuesOf(lane), lane), lane).share;
  }

  /** The lanes for one claim: of each band the next tenants in turn that have room, and of each the next lanes. */
  next(cap: LaneCap): readonly OpenQueues[] {
    const all: OpenQueues[] = [];
    for (const queues of this.#queues.values()) {
      const rules = this.policies.rulesOf(queues.name);
      const bands: OpenBand[] = [];
      for (const [band, { share, ring }] of queues.bands) {
        const tenants = openTenants(ring, this.#window, cap);
        if (tenants.length > 0) bands.push({ band, share, tenants, some: ring.size > this.#window });
      }
      const overdue = rules.aging === undefined ? [] : this.#overdue(queues, rules.aging, cap);
      if (bands.length > 0 || overdue.length > 0) all.push({ share: queues.share, rules, bands, overdue });
    }
    return all;
  }

  /** These were asked for: their turn is over, and their heads wait from now on. */
  asked(offered: readonly Offered[]): void {
    const now = this.clock.monotonic();
    for (const { lane } of offered) {
      const known = this.#given.get(lane);
      if (known === undefined) continue;
      known.tenant.lanes.passed(known);
      known.since = now;
      const { waiting } = known.queues;
      if (waiting.size > 0 && waiting.delete(known.key)) this.#await(known);
    }
  }

  /**
   * So many lanes, asked for so many jobs in all, gave some. Where each gives a few, a claim asks more of them, or it would
   * hardly be worth its way; but of each for one more than that, which shows that it has no more. Where all gave what they
   * were asked for, fewer are asked at a time, for twice as many.
   */
  brought(lanes: number, limit: number, jobs: number): void {
    if (jobs === 0) return;
    const each = jobs / lanes;
    this.#portion = Math.min(LARGEST_PORTION, jobs < limit ? Math.floor(each) + 1 : Math.ceil(2 * each));
    if (lanes >= WINDOW) this.#window = Math.max(WINDOW, Math.min(WIDEST, Math.floor(limit / (each + 1))));
  }

  #overdue({ waiting }: Queues, aging: number, cap: LaneCap): OpenQueues["overdue"] {
    const by = this.clock.monotonic() - aging;
    const overdue: (OpenLane & { readonly share: Share })[] = [];
    for (const { lane, tenant, since } of waiting.values()) {
      if (since > by || overdue.length >= WINDOW) break;
      const room = cap(lane);
      if (room > 0) overdue.push({ lane, room, share: tenant.share });
    }
    return overdue;
  }

  /** Lets go of what is known of tenants that are gone, once they owe nothing, or are so many that it does not matter. */
  #tidy(): void {
    const now = this.clock.monotonic();
    for (const { bands } of this.#queues.values()) {
      for (const { tenants } of bands.values()) {
        for (const [name, { share, lanes }] of tenants)
          if (lanes.size === 0 && share.idle && (tenants.size > MOST_REMEMBERED || share.isLevel(now))) tenants.delete(name);
      }
    }
  }

  #await(known: Known): void {
    if (this.policies.rulesOf(known.queues.name).aging !== undefined) known.queues.waiting.set(known.key, known);
  }

  #nameFor({ queue }: Lane): string {
    return this.policies.hasRules(queue) ? queue : "";
  }

  #queuesOf(lane: Lane): Queues {
    const name = this.#nameFor(lane);
    let queues = this.#queues.get(name);
    if (queues === undefined) {
      queues = { name, share: new Share(this.root), bands: new Map(), waiting: new Map() };
      this.#queues.set(name, queues);
    }
    return queues;
  }

  #tenantOf(band: Band, { tenant: name }: Lane): Tenant {
    let tenant = band.tenants.get(name);
    if (tenant === undefined) {
      tenant = { share: new Share(band.share, this.policies.weightOf(name)), lanes: new Ring(), place: -1 };
      band.tenants.set(name, tenant);
    }
    return tenant;
  }
}

function bandOf({ share, bands }: Queues, lane: Lane): Band {
  let band = bands.get(lane.band);
  if (band === undefined) {
    band = { share: new Share(share), tenants: new Map(), ring: new Ring() };
    bands.set(lane.band, band);
  }
  return band;
}

function openTenants(ring: Ring<Tenant>, window: number, cap: LaneCap): readonly OpenTenant[] {
  if (ring.size === 0) return [];
  const each = Math.max(1, Math.floor(window / ring.size));
  const open: OpenTenant[] = [];
  let last: Tenant | undefined;
  for (let turn = 0; turn < ring.size; turn++) {
    const tenant = ring.at(turn);
    const lanes = openLanes(tenant, each, cap);
    if (lanes.length > 0) open.push({ share: tenant.share, lanes });
    last = tenant;
    if (open.length >= window) break;
  }
  if (last !== undefined) ring.passed(last);
  return open;
}

function openLanes({ lanes }: Tenant, most: number, cap: LaneCap): readonly OpenLane[] {
  const open: OpenLane[] = [];
  for (let turn = 0; turn < lanes.size; turn++) {
    const { lane } = lanes.at(turn);
    const room = cap(lane);
    if (room > 0) open.push({ lane, room });
    if (open.length >= most) break;
  }
  return open;
}
