import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Priority } from "../jobs/job.js";
import { type Lane, laneKey } from "../jobs/lane.js";
import { type MinimumBatch, type OpenLane, type OpenQueues, planClaim } from "./claim-plan.js";
import { Share } from "./fair-share.js";
import type { PriorityRules } from "./policy.js";

const lane = (tenant = "a", task = "x", priority: Priority = 5, queue = "q"): Lane => ({ queue, priority, tenant, task });

interface SharingWorld {
  readonly root: Share;
  readonly queues: Map<string, { share: Share; priorities: Map<Priority, { share: Share; tenants: Map<string, Share> }> }>;
}

/** The shares of one worker, and its lanes as an offer sees them. */
class Sharers {
  readonly #world: SharingWorld = { root: new Share(undefined), queues: new Map() };
  readonly #turns = new Map<string, number>();
  constructor(
    readonly weights: Readonly<Record<string, number>> = {},
    readonly rules: Readonly<Record<string, PriorityRules>> = {},
  ) {}

  get root(): Share {
    return this.#world.root;
  }

  shareOf({ queue, priority, tenant }: Lane): Share {
    const name = Object.hasOwn(this.rules, queue) ? queue : "";
    const own = emplace(this.#world.queues, name, () => ({ share: new Share(this.root), priorities: new Map() }));
    const ofPriority = emplace(own.priorities, priority, () => ({ share: new Share(own.share), tenants: new Map<string, Share>() }));
    return emplace(ofPriority.tenants, tenant, () => new Share(ofPriority.share, this.weights[tenant] ?? 1));
  }

  open(lanes: readonly Lane[], cap: (lane: Lane) => number = () => 1e6, overdue: readonly Lane[] = []): readonly OpenQueues[] {
    const all = new Map<
      Share,
      { share: Share; rules: PriorityRules; priorities: Map<Share, { share: Share; priority: Priority; tenants: Map<Share, OpenLane[]> }> }
    >();
    for (const one of lanes) {
      const share = this.shareOf(one);
      const priority = share.parent as Share;
      const queues = priority.parent as Share;
      const inQueues = emplace(all, queues, () => ({ share: queues, rules: this.rules[one.queue] ?? {}, priorities: new Map() }));
      const inPriority = emplace(inQueues.priorities, priority, () => ({
        share: priority,
        priority: one.priority,
        tenants: new Map<Share, OpenLane[]>(),
      }));
      if (cap(one) > 0) emplace<Share, OpenLane[]>(inPriority.tenants, share, () => []).push({ lane: one, room: cap(one) });
    }
    return [...all.values()].map(({ share, rules, priorities }) => ({
      share,
      rules,
      overdue: overdue.map((one) => ({ lane: one, room: cap(one), share: this.shareOf(one) })),
      priorities: [...priorities.values()]
        .map((one) => ({
          share: one.share,
          priority: one.priority,
          tenants: [...one.tenants].map(([tenant, own]) => ({ share: tenant, lanes: this.#inTurn(own) })),
        }))
        .filter(({ tenants }) => tenants.length > 0),
    }));
  }

  /** As a worker's book does it: the lane that was served last comes last. */
  #inTurn(lanes: readonly OpenLane[]): readonly OpenLane[] {
    return [...lanes].sort((a, b) => (this.#turns.get(laneKey(a.lane)) ?? 0) - (this.#turns.get(laneKey(b.lane)) ?? 0));
  }

  passed(one: Lane, turn: number): void {
    this.#turns.set(laneKey(one), turn);
  }
}

function emplace<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}

interface SharingRun {
  readonly lanes: readonly Lane[];
  readonly slots: number;
  readonly until: number;
  /** ms */
  readonly length?: (lane: Lane) => number;
  readonly sharers?: Sharers;
  readonly overdue?: (now: number, servedAt: (lane: Lane) => number) => readonly Lane[];
  readonly key: (lane: Lane) => string;
  readonly minimumBatch?: MinimumBatch;
  /** jobs of a lane before it is empty */
  readonly backlog?: (lane: Lane) => number;
}

/** A worker of so many slots in virtual time, whose lanes always have work: the ms of slots that each key has had. */
function worked({ lanes, slots, until, length = () => 10, sharers = new Sharers(), overdue, key, minimumBatch }: SharingRun) {
  const had: Record<string, number> = {};
  const firsts = new Map<string, number>();
  const lasts = new Map<string, number>();
  const gaps = new Map<string, number>();
  const running: { lane: Lane; share: Share; from: number; to: number }[] = [];
  let turn = 0;
  for (let now = 0; now < until; ) {
    const servedAt = (one: Lane) => lasts.get(laneKey(one)) ?? 0;
    for (const { lane: one, quota, share } of planClaim(
      sharers.root,
      sharers.open(lanes, undefined, overdue?.(now, servedAt)),
      slots - running.length,
      now,
      minimumBatch,
    )) {
      sharers.passed(one, ++turn);
      const name = laneKey(one);
      gaps.set(name, Math.max(gaps.get(name) ?? 0, now - servedAt(one)));
      lasts.set(name, now);
      if (!firsts.has(name)) firsts.set(name, now);
      for (let n = 0; n < quota; n++) {
        share.take(1);
        share.begin(now);
        running.push({ lane: one, share, from: now, to: now + length(one) });
      }
    }
    now = Math.min(...running.map(({ to }) => to));
    for (let i = running.length - 1; i >= 0; i--) {
      const job = running[i] as (typeof running)[number];
      if (job.to > now) continue;
      running.splice(i, 1);
      job.share.take(-1);
      job.share.end(job.from, now);
      had[key(job.lane)] = (had[key(job.lane)] ?? 0) + now - job.from;
    }
  }
  for (const { lane: one, from } of running) had[key(one)] = (had[key(one)] ?? 0) + until - from;
  const total = Object.values(had).reduce((sum, ms) => sum + ms, 0);
  return { share: (name: string) => (had[name] ?? 0) / total, had, firsts, gaps };
}

const byTenant = ({ tenant }: Lane) => tenant;
const byPriority = ({ priority }: Lane) => String(priority);

describe("offer", () => {
  const once = (lanes: readonly Lane[], size: number, cap?: (lane: Lane) => number) => {
    const sharers = new Sharers();
    return planClaim(sharers.root, sharers.open(lanes, cap), size, 0).map(({ lane: one, quota }) => ({ lane: one, quota }));
  };

  it("gives everything to the only lane", () => {
    expect(once([lane()], 10)).toEqual([{ lane: lane(), quota: 10 }]);
  });

  it("offers nothing without lanes, size or room", () => {
    expect(once([], 10)).toEqual([]);
    expect(once([lane()], 0)).toEqual([]);
    expect(once([lane()], 10, () => 0)).toEqual([]);
  });

  it("shares a worker's time alike among tenants, however many tasks one has", () => {
    const lanes = [...Array.from({ length: 50 }, (_, n) => lane("many", `task ${n}`)), lane("one")];
    const { share } = worked({ lanes, slots: 10, until: 5_000, key: byTenant });
    expect(share("many")).toBeCloseTo(0.5, 2);
  });

  it("shares time, not starts: jobs of 200 ms and of 5 ms get the same", () => {
    const length = ({ tenant }: Lane) => (tenant === "long" ? 200 : 5);
    for (const slots of [1, 2, 7, 10]) {
      const { share } = worked({ lanes: [lane("long"), lane("short")], slots, until: 20_000, length, key: byTenant });
      expect(share("long"), `${slots} slots`).toBeGreaterThan(0.48);
      expect(share("long"), `${slots} slots`).toBeLessThan(0.52);
    }
  });

  it("shares time by weight, with few slots and with many, and jobs of any length", () => {
    const weights = { a: 1, b: 2, c: 3, d: 4 };
    const length = ({ tenant }: Lane) => ({ a: 37, b: 11, c: 90, d: 23 })[tenant] as number;
    for (const slots of [1, 3, 10, 40]) {
      const sharers = new Sharers(weights);
      const { share } = worked({ lanes: ["a", "b", "c", "d"].map((name) => lane(name)), slots, until: 10_000, length, sharers, key: byTenant });
      for (const [name, weight] of Object.entries(weights))
        expect(Math.abs(share(name) / (weight / 10) - 1), `${name} of ${slots} slots`).toBeLessThan(0.1);
    }
  });

  it("serves every tenant within one round, when there are more of them than slots", () => {
    const lanes = Array.from({ length: 20 }, (_, n) => lane(`tenant ${n}`));
    const { firsts } = worked({ lanes, slots: 1, until: 20 * 10, key: byTenant });
    expect(firsts.size).toBe(20);
  });

  it("serves a newcomer at the next free slot, and lets nobody save up while he is away", () => {
    const sharers = new Sharers();
    const old = Array.from({ length: 9 }, (_, n) => lane(`old ${n}`));
    worked({ lanes: old, slots: 3, until: 10_000, sharers, key: byTenant });
    const [first] = planClaim(sharers.root, sharers.open([...old, lane("new")]), 1, 10_000);
    expect(first?.lane.tenant).toBe("new");
    const { share } = worked({ lanes: [...old, lane("new")], slots: 3, until: 10_000, sharers, key: byTenant });
    expect(share("new")).toBeCloseTo(0.1, 1);
  });

  describe("in minimum batches", () => {
    const tenants = (count: number, priority: Priority = 5) => Array.from({ length: count }, (_, n) => lane(`tenant ${n}`, "x", priority));
    const plenty = { jobs: 64, within: 1e9 };
    /** All have had 50 ms, with jobs of so many. */
    const seasoned = (lanes: readonly Lane[], length: (lane: Lane) => number = () => 1, weights: Record<string, number> = {}) => {
      const sharers = new Sharers(weights);
      for (const one of lanes) {
        const share = sharers.shareOf(one);
        for (let had = 0; had < 50; had += length(one)) {
          share.take(1);
          share.begin(0);
          share.take(-1);
          share.end(0, length(one));
        }
      }
      return sharers;
    };
    const quotas = (offered: readonly { readonly quota: number }[]) => offered.map(({ quota }) => quota);

    it("gives who is furthest behind a whole one, and others theirs by the claims that follow", () => {
      const sharers = seasoned(tenants(100));
      const had = new Map<string, number>();
      for (let claim = 0; claim < 25; claim++) {
        const offered = planClaim(sharers.root, sharers.open(tenants(100)), 1_024, 0, plenty);
        expect(offered.length).toBeLessThanOrEqual(17);
        for (const { lane: one, share, quota } of offered) {
          share.take(quota);
          had.set(one.tenant, (had.get(one.tenant) ?? 0) + quota);
        }
      }
      expect(had.size).toBe(100);
      for (const [tenant, jobs] of had) expect(Math.abs(jobs - 256), tenant).toBeLessThanOrEqual(64);
    });

    it("adds up to what was asked for, the last one getting what is left", () => {
      const sharers = seasoned(tenants(100));
      expect(quotas(planClaim(sharers.root, sharers.open(tenants(100)), 1_000, 0, plenty))).toEqual([...Array.from({ length: 15 }, () => 64), 40]);
    });

    it("gives fifteen tenants a part at the least: of a small claim, and of what a priority gets of a large one", () => {
      const urgent = tenants(100, 9);
      const others = tenants(100, 0);
      const sharers = seasoned([...urgent, ...others]);
      expect(quotas(planClaim(sharers.root, sharers.open(urgent), 30, 0, plenty))).toEqual(Array.from({ length: 15 }, () => 2));
      const offered = planClaim(sharers.root, sharers.open([...urgent, ...others]), 1_000, 0, plenty).filter(({ lane: one }) => one.priority === 0);
      expect(offered.length).toBeGreaterThanOrEqual(
        Math.min(
          15,
          quotas(offered).reduce((sum, quota) => sum + quota, 0),
        ),
      );
    });

    it("gives as much as without them where that is more", () => {
      const sharers = seasoned(tenants(4));
      expect(quotas(planClaim(sharers.root, sharers.open(tenants(4)), 1_000, 0, plenty))).toEqual([250, 250, 250, 250]);
    });

    it("gives smaller ones to who has long jobs, so that all have theirs within the same time", () => {
      const lanes = [lane("slow"), ...tenants(20)];
      const sharers = seasoned(lanes, ({ tenant }) => (tenant === "slow" ? 50 : 1));
      const first = (within: number) => planClaim(sharers.root, sharers.open(lanes), 960, 0, { jobs: 64, within })[0];
      expect(first(1e9)).toMatchObject({ lane: lane("slow"), quota: 64 });
      expect(first(21 * 50 * 3)).toMatchObject({ lane: lane("slow"), quota: 3 });
    });

    it("gives smaller ones to who has a small weight, and none to whose jobs nobody has seen, or where not all are looked at", () => {
      const lanes = tenants(100);
      const sharers = seasoned(lanes, () => 1, { "tenant 0": 0.25 });
      // It has had four times as much by its weight: the others' due comes to it.
      for (const one of lanes.slice(1)) sharers.shareOf(one).take(200);
      const light = planClaim(sharers.root, sharers.open(lanes), 1_000, 0, plenty).find(({ lane: one }) => one.tenant === "tenant 0");
      expect(light?.quota ?? 0).toBeLessThanOrEqual(16);
      const unseen = new Sharers();
      expect(new Set(quotas(planClaim(unseen.root, unseen.open(lanes), 1_000, 0, plenty)))).toEqual(new Set([10]));
      const open = seasoned(lanes)
        .open(lanes)
        .map((one) => ({ ...one, priorities: one.priorities.map((priority) => ({ ...priority, some: true })) }));
      expect(new Set(quotas(planClaim(new Share(undefined), open, 1_000, 0, plenty)))).toEqual(new Set([10]));
    });

    it("shares time by weight all the same", () => {
      const weights = { a: 1, b: 2, c: 3, d: 4 };
      const length = ({ tenant }: Lane) => ({ a: 3, b: 1, c: 2, d: 1 })[tenant] as number;
      for (const slots of [10, 40]) {
        const sharers = new Sharers(weights);
        const minimumBatch = { jobs: 64, within: slots * 50 };
        const { share } = worked({
          lanes: Object.keys(weights).map((name) => lane(name)),
          slots,
          until: 5_000,
          length,
          sharers,
          key: byTenant,
          minimumBatch,
        });
        for (const [name, weight] of Object.entries(weights))
          expect(Math.abs(share(name) / (weight / 10) - 1), `${name} of ${slots} slots`).toBeLessThan(0.1);
      }
    });

    it("serves a newcomer by the next claim", () => {
      const sharers = new Sharers();
      const old = tenants(100);
      worked({ lanes: old, slots: 100, until: 1_000, length: () => 1, sharers, key: byTenant, minimumBatch: plenty });
      const [first] = planClaim(sharers.root, sharers.open([...old, lane("new")]), 100, 1_000, plenty);
      expect(first?.lane.tenant).toBe("new");
    });
  });

  it("leaves out no lane of a tenant, though tenants and lanes are as many", () => {
    const lanes = ["a", "b", "c"].flatMap((tenant) => ["x", "y", "z"].map((task) => lane(tenant, task)));
    for (const slots of [1, 2, 3]) {
      const { had } = worked({ lanes, slots, until: 9_000, key: laneKey });
      expect(Object.keys(had), `${slots} slots`).toHaveLength(9);
      for (const ms of Object.values(had)) expect(ms / (slots * 1_000), `${slots} slots`).toBeCloseTo(1, 0);
    }
  });

  it("shares a flood among priorities by weight, and starves none, however many slots", () => {
    const lanes = [lane("a", "x", 9), lane("a", "x", 5), lane("a", "x", 0)];
    for (const slots of [1, 2, 7, 100]) {
      const { share } = worked({ lanes, slots, until: 20_000, key: byPriority });
      expect(share("9"), `${slots} slots`).toBeCloseTo(45 / 54, 1);
      expect(share("5"), `${slots} slots`).toBeCloseTo(8 / 54, 1);
      expect(share("0"), `${slots} slots`).toBeGreaterThan(0.015);
    }
  });

  it("gives the lowest priority one part in a hundred under a flood of everything above it", () => {
    const lanes = ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9] as const).map((priority) => lane("a", "x", priority));
    const { share, had } = worked({ lanes, slots: 4, until: 100_000, key: byPriority });
    expect(share("0")).toBeGreaterThan(0.0095);
    expect(Object.keys(had)).toHaveLength(10);
  });

  it("keeps to the weights and the minimum that a queue sets for its priorities", () => {
    const sharers = new Sharers({}, { q: { priorityWeights: { 9: 70, 5: 29, 0: 1 }, priorityMinimum: { 0: 0.2 } } });
    const { share } = worked({ lanes: [lane("a", "x", 9), lane("a", "x", 5), lane("a", "x", 0)], slots: 4, until: 20_000, sharers, key: byPriority });
    expect(share("0")).toBeCloseTo(0.2, 1);
    expect(share("9") / share("5")).toBeGreaterThan(2.1);
    expect(share("9") / share("5")).toBeLessThan(2.8);
  });

  it("rules of one queue change nothing for the others", () => {
    const sharers = new Sharers({}, { strict: { strictPriority: true } });
    const lanes = [lane("a", "x", 5, "strict"), lane("a", "x", 4, "strict"), lane("a", "x", 5, "plain"), lane("a", "x", 4, "plain")];
    const { share } = worked({ lanes, slots: 4, until: 20_000, sharers, key: ({ queue, priority }) => `${queue} ${priority}` });
    expect(share("strict 4")).toBe(0);
    expect(share("strict 5")).toBeCloseTo(0.5, 1);
    expect(share("plain 5") / share("plain 4")).toBeCloseTo(8 / 5, 0);
  });

  it("in a strict queue the lower priority waits without end, and with aging no longer than that", () => {
    const lanes = [lane("a", "x", 9), lane("a", "x", 0)];
    const rules = { q: { strictPriority: true, aging: 500 } } as const;
    const without = worked({ lanes, slots: 2, until: 100_000, sharers: new Sharers({}, rules), key: byPriority });
    expect(without.share("0"), "without it nothing ever").toBe(0);
    const overdue = (now: number, servedAt: (one: Lane) => number) => lanes.filter((one) => now - servedAt(one) >= 500);
    const withAging = worked({ lanes, slots: 2, until: 100_000, sharers: new Sharers({}, rules), overdue, key: byPriority });
    const longest = withAging.gaps.get(laneKey(lane("a", "x", 0))) as number;
    expect(longest).toBeGreaterThanOrEqual(500);
    expect(longest, "aging, and a slot that gets free").toBeLessThanOrEqual(500 + 10);
    expect(withAging.share("9"), "and no more than that").toBeGreaterThan(0.98);
  });

  it("passes on what a cap keeps from a lane, across tenants and priorities", () => {
    const caps = new Map([
      ["x", 3],
      ["y", 0],
    ]);
    const cap = ({ task }: Lane) => caps.get(task) ?? 100;
    const lanes = [lane("a", "x"), lane("b", "z"), lane("a", "y", 9)];
    expect(once(lanes, 10, cap)).toEqual([
      { lane: lanes[0], quota: 3 },
      { lane: lanes[1], quota: 7 },
    ]);
  });

  it("never exceeds a cap, and adds up to the size or to all the caps together", () => {
    const lanes: fc.Arbitrary<Lane[]> = fc.uniqueArray(
      fc.record({
        queue: fc.constantFrom("q", "r", "strict"),
        priority: fc.integer({ min: 0, max: 9 }) as fc.Arbitrary<Priority>,
        tenant: fc.constantFrom("a", "b", "c"),
        task: fc.constantFrom("x", "y", "z"),
      }),
      { selector: laneKey, maxLength: 30 },
    );
    const caps = fc.array(fc.nat({ max: 50 }), { minLength: 30, maxLength: 30 });
    fc.assert(
      fc.property(lanes, fc.integer({ min: 1, max: 500 }), caps, fc.subarray(["a", "b", "c"]), (all, size, given, late) => {
        const sharers = new Sharers({ a: 3, b: 0.2 }, { strict: { strictPriority: true, aging: 1 } });
        const cap = (one: Lane) => given[all.indexOf(one)] ?? 0;
        for (let round = 0; round < 3; round++) {
          const overdue = all.filter((one) => late.includes(one.tenant) && cap(one) > 0);
          const quotas = planClaim(sharers.root, sharers.open(all, cap, overdue), size, round * 10);
          for (const { lane: one, quota, share } of quotas) {
            expect(quota).toBeGreaterThan(0);
            expect(quota).toBeLessThanOrEqual(cap(one));
            expect(Number.isInteger(quota)).toBe(true);
            share.take(quota);
          }
          const room = all.reduce((sum, one) => sum + cap(one), 0);
          const given = quotas.reduce((sum, { quota }) => sum + quota, 0);
          // What is given to lanes that waited too long is cut out of the rooms seen by the others.
          if (overdue.length === 0) expect(given).toBe(Math.min(size, room));
          else expect(given).toBeLessThanOrEqual(Math.min(size, room));
          expect(new Set(quotas.map((quota) => quota.lane)).size, "each lane once").toBe(quotas.length);
        }
      }),
    );
  });
});
