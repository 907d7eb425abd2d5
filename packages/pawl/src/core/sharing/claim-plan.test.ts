import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Priority } from "../jobs/job.js";
import { type Lane, laneKey } from "../jobs/lane.js";
import { type PlanLoad, type PlannedClaim, plan, recordAnswer, type WorkerLoad } from "./claim-plan.js";
import type { Share } from "./fair-share.js";
import { LaneState } from "./lane-state.js";
import type { PolicyRecord, PriorityRules } from "./policy.js";
import { PolicySet } from "./policy-set.js";

const lane = (tenant = "a", task = "x", priority: Priority = 5, queue = "q"): Lane => ({ queue, priority, tenant, task });

/** Lanes, policies and load of a worker with nothing in hand. */
class PlanFixture {
  readonly lanes = new LaneState(({ task }) => task === "once");
  readonly policies: PolicySet;

  constructor(
    lanes: readonly Lane[],
    weights: Readonly<Record<string, number>> = {},
    rules: Readonly<Record<string, PriorityRules>> = {},
    limited: readonly string[] = [],
  ) {
    const records = [
      ...Object.entries(weights).map(([name, weight]) => ({ kind: "tenant", name, policy: { weight }, version: 1 })),
      ...Object.entries(rules).map(([name, policy]) => ({ kind: "queue", name, policy, version: 1 })),
      ...limited.map((name) => ({ kind: "task", name, policy: { concurrency: 1 }, version: 1 })),
    ];
    this.policies = new PolicySet(records as PolicyRecord[]);
    this.add(lanes);
  }

  add(lanes: readonly Lane[], now = 0): void {
    this.lanes.add(lanes, this.policies, now, 0.5);
  }

  shareOf(one: Lane): Share {
    return this.lanes.shareOf(one, this.policies);
  }

  /** The claims for these free slots. */
  claims(free: number, load: Partial<Omit<PlanLoad, "worker">> & Partial<WorkerLoad> = {}): readonly PlannedClaim[] {
    const { unstarted = 0, ahead = 0, ...others } = load;
    return plan(this.lanes, this.policies, {
      worker: { free, unstarted, ahead },
      pending: [],
      maxJobsPerClaim: 100_000,
      timeAhead: 0,
      now: 0,
      room: () => 1e6,
      reserve: (_, jobs) => jobs,
      ...others,
    });
  }

  quotas(
    free: number,
    load: Parameters<PlanFixture["claims"]>[1] = {},
  ): readonly { readonly lane: Lane; readonly quota: number; readonly share: Share }[] {
    return this.claims(free, load).flatMap(({ quotas }) =>
      quotas.map(({ lane: one, quota, entry }) => ({ lane: one, quota, share: entry.tenant.share })),
    );
  }
}

interface SharingRun {
  readonly fixture: PlanFixture;
  readonly slots: number;
  readonly until: number;
  /** ms */
  readonly length?: (lane: Lane) => number;
  readonly key: (lane: Lane) => string;
  readonly timeAhead?: number;
}

/** A worker of so many slots in virtual time, whose lanes always have work: the ms of slots that each key has had. */
function worked({ fixture, slots, until, length = () => 10, key, timeAhead = 0 }: SharingRun) {
  const had: Record<string, number> = {};
  const firsts = new Map<string, number>();
  const lasts = new Map<string, number>();
  const gaps = new Map<string, number>();
  const running: { lane: Lane; share: Share; from: number; to: number }[] = [];
  for (let now = 0; now < until; ) {
    for (const { lane: one, quota, share } of fixture.quotas(slots - running.length, { now, timeAhead })) {
      const name = laneKey(one);
      gaps.set(name, Math.max(gaps.get(name) ?? 0, now - (lasts.get(name) ?? 0)));
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

describe("how many jobs of each lane are claimed", () => {
  const once = (lanes: readonly Lane[], size: number, room: (lane: Lane) => number = () => 1e6) =>
    new PlanFixture(lanes).quotas(size, { room }).map(({ lane: one, quota }) => ({ lane: one, quota }));

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
    const { share } = worked({ fixture: new PlanFixture(lanes), slots: 10, until: 5_000, key: byTenant });
    expect(share("many")).toBeCloseTo(0.5, 2);
  });

  it("shares time, not starts: jobs of 200 ms and of 5 ms get the same", () => {
    const length = ({ tenant }: Lane) => (tenant === "long" ? 200 : 5);
    for (const slots of [1, 2, 7, 10]) {
      const { share } = worked({ fixture: new PlanFixture([lane("long"), lane("short")]), slots, until: 20_000, length, key: byTenant });
      expect(share("long"), `${slots} slots`).toBeGreaterThan(0.48);
      expect(share("long"), `${slots} slots`).toBeLessThan(0.52);
    }
  });

  it("shares time by weight, with few slots and with many, and jobs of any length", () => {
    const weights = { a: 1, b: 2, c: 3, d: 4 };
    const length = ({ tenant }: Lane) => ({ a: 37, b: 11, c: 90, d: 23 })[tenant] as number;
    for (const slots of [1, 3, 10, 40]) {
      const fixture = new PlanFixture(
        Object.keys(weights).map((name) => lane(name)),
        weights,
      );
      const { share } = worked({ fixture, slots, until: 10_000, length, key: byTenant });
      for (const [name, weight] of Object.entries(weights))
        expect(Math.abs(share(name) / (weight / 10) - 1), `${name} of ${slots} slots`).toBeLessThan(0.1);
    }
  });

  it("serves every tenant within one round, when there are more of them than slots", () => {
    const lanes = Array.from({ length: 20 }, (_, n) => lane(`tenant ${n}`));
    const { firsts } = worked({ fixture: new PlanFixture(lanes), slots: 1, until: 20 * 10, key: byTenant });
    expect(firsts.size).toBe(20);
  });

  it("serves a newcomer at the next free slot, and lets nobody save up while he is away", () => {
    const fixture = new PlanFixture(Array.from({ length: 9 }, (_, n) => lane(`old ${n}`)));
    worked({ fixture, slots: 3, until: 10_000, key: byTenant });
    fixture.add([lane("new")], 10_000);
    const [first] = fixture.quotas(1, { now: 10_000 });
    expect(first?.lane.tenant).toBe("new");
    const { share } = worked({ fixture, slots: 3, until: 10_000, key: byTenant });
    expect(share("new")).toBeCloseTo(0.1, 1);
  });

  describe("in minimum batches", () => {
    const tenants = (count: number, priority: Priority = 5) => Array.from({ length: count }, (_, n) => lane(`tenant ${n}`, "x", priority));
    const plenty = 1e9;
    /** It has learned that lanes have plenty: a minimum batch is 64 jobs. */
    const withPlenty = (fixture: PlanFixture) => {
      fixture.lanes.recordYield(1, 1_000, 1_000);
      return fixture;
    };
    /** All have had 50 ms, with jobs of so many. */
    const seasoned = (lanes: readonly Lane[], length: (lane: Lane) => number = () => 1, weights: Record<string, number> = {}) => {
      const fixture = withPlenty(new PlanFixture(lanes, weights));
      for (const one of lanes) {
        const share = fixture.shareOf(one);
        for (let had = 0; had < 50; had += length(one)) {
          share.take(1);
          share.begin(0);
          share.take(-1);
          share.end(0, length(one));
        }
      }
      return fixture;
    };
    const quotas = (planned: readonly { readonly quota: number }[]) => planned.map(({ quota }) => quota);

    it("gives who is furthest behind a whole one, and others theirs by the claims that follow", () => {
      const fixture = seasoned(tenants(100));
      const had = new Map<string, number>();
      for (let claim = 0; claim < 25; claim++) {
        const planned = fixture.quotas(1_024, { timeAhead: plenty });
        expect(planned.length).toBeLessThanOrEqual(17);
        for (const { lane: one, share, quota } of planned) {
          share.take(quota);
          had.set(one.tenant, (had.get(one.tenant) ?? 0) + quota);
        }
      }
      expect(had.size).toBe(100);
      for (const [tenant, jobs] of had) expect(Math.abs(jobs - 256), tenant).toBeLessThanOrEqual(64);
    });

    it("adds up to what was asked for, the last one getting what is left", () => {
      const planned = seasoned(tenants(100)).quotas(1_000, { timeAhead: plenty });
      expect(quotas(planned)).toEqual([...Array.from({ length: 15 }, () => 64), 40]);
    });

    it("gives fifteen tenants a part at the least: of a small claim, and of what a priority gets of a large one", () => {
      const urgent = tenants(100, 9);
      const others = tenants(100, 0);
      const fixture = seasoned([...urgent, ...others]);
      const room = ({ priority }: Lane) => (priority === 9 ? 1e6 : 0);
      expect(quotas(fixture.quotas(30, { timeAhead: plenty, room }))).toEqual(Array.from({ length: 15 }, () => 2));
      const planned = fixture.quotas(1_000, { timeAhead: plenty }).filter(({ lane: one }) => one.priority === 0);
      expect(planned.length).toBeGreaterThanOrEqual(
        Math.min(
          15,
          quotas(planned).reduce((sum, quota) => sum + quota, 0),
        ),
      );
    });

    it("gives as much as without them where that is more", () => {
      expect(quotas(seasoned(tenants(4)).quotas(1_000, { timeAhead: plenty }))).toEqual([250, 250, 250, 250]);
    });

    it("gives smaller ones to who has long jobs, so that all have theirs within the same time", () => {
      const lanes = [lane("slow"), ...tenants(20)];
      const first = (timeAhead: number) => {
        const fixture = seasoned(lanes, ({ tenant }) => (tenant === "slow" ? 50 : 1));
        // It is behind the others, so its turn is first.
        for (const one of lanes.slice(1)) fixture.shareOf(one).take(1);
        return fixture.quotas(960, { timeAhead })[0];
      };
      expect(first(1e9)).toMatchObject({ lane: lane("slow"), quota: 64 });
      expect(first(21 * 50 * 3)).toMatchObject({ lane: lane("slow"), quota: 3 });
    });

    it("gives smaller ones to who has a small weight, and none to whose jobs nobody has seen, or where not all are looked at", () => {
      const lanes = tenants(100);
      const fixture = seasoned(lanes, () => 1, { "tenant 0": 0.25 });
      // It has had four times as much by its weight: the others' due comes to it.
      for (const one of lanes.slice(1)) fixture.shareOf(one).take(200);
      const light = fixture.quotas(1_000, { timeAhead: plenty }).find(({ lane: one }) => one.tenant === "tenant 0");
      expect(light?.quota ?? 0).toBeLessThanOrEqual(16);
      const unseen = withPlenty(new PlanFixture(lanes));
      expect(new Set(quotas(unseen.quotas(1_000, { timeAhead: plenty })))).toEqual(new Set([10]));
      const more = seasoned(tenants(200));
      expect(quotas(more.quotas(1_024, { timeAhead: plenty }))).toEqual(Array.from({ length: 128 }, () => 8));
    });

    it("shares time by weight all the same", () => {
      const weights = { a: 1, b: 2, c: 3, d: 4 };
      const length = ({ tenant }: Lane) => ({ a: 3, b: 1, c: 2, d: 1 })[tenant] as number;
      for (const slots of [10, 40]) {
        const lanes = Object.keys(weights).map((name) => lane(name));
        const fixture = withPlenty(new PlanFixture(lanes, weights));
        const { share } = worked({ fixture, slots, until: 5_000, length, key: byTenant, timeAhead: slots * 50 });
        for (const [name, weight] of Object.entries(weights))
          expect(Math.abs(share(name) / (weight / 10) - 1), `${name} of ${slots} slots`).toBeLessThan(0.1);
      }
    });

    it("serves a newcomer by the next claim", () => {
      const fixture = withPlenty(new PlanFixture(tenants(100)));
      worked({ fixture, slots: 100, until: 1_000, length: () => 1, key: byTenant, timeAhead: plenty });
      fixture.add([lane("new")], 1_000);
      const [first] = fixture.quotas(100, { now: 1_000, timeAhead: plenty });
      expect(first?.lane.tenant).toBe("new");
    });
  });

  it("leaves out no lane of a tenant, though tenants and lanes are as many", () => {
    const lanes = ["a", "b", "c"].flatMap((tenant) => ["x", "y", "z"].map((task) => lane(tenant, task)));
    for (const slots of [1, 2, 3]) {
      const { had } = worked({ fixture: new PlanFixture(lanes), slots, until: 9_000, key: laneKey });
      expect(Object.keys(had), `${slots} slots`).toHaveLength(9);
      for (const ms of Object.values(had)) expect(ms / (slots * 1_000), `${slots} slots`).toBeCloseTo(1, 0);
    }
  });

  it("shares a flood among priorities by weight, and starves none, however many slots", () => {
    const lanes = [lane("a", "x", 9), lane("a", "x", 5), lane("a", "x", 0)];
    for (const slots of [1, 2, 7, 100]) {
      const { share } = worked({ fixture: new PlanFixture(lanes), slots, until: 20_000, key: byPriority });
      expect(share("9"), `${slots} slots`).toBeCloseTo(45 / 54, 1);
      expect(share("5"), `${slots} slots`).toBeCloseTo(8 / 54, 1);
      expect(share("0"), `${slots} slots`).toBeGreaterThan(0.015);
    }
  });

  it("gives the lowest priority one part in a hundred under a flood of everything above it", () => {
    const lanes = ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9] as const).map((priority) => lane("a", "x", priority));
    const { share, had } = worked({ fixture: new PlanFixture(lanes), slots: 4, until: 100_000, key: byPriority });
    expect(share("0")).toBeGreaterThan(0.0095);
    expect(Object.keys(had)).toHaveLength(10);
  });

  it("keeps to the weights and the minimum that a queue sets for its priorities", () => {
    const rules = { q: { priorityWeights: { 9: 70, 5: 29, 0: 1 }, priorityMinimum: { 0: 0.2 } } };
    const fixture = new PlanFixture([lane("a", "x", 9), lane("a", "x", 5), lane("a", "x", 0)], {}, rules);
    const { share } = worked({ fixture, slots: 4, until: 20_000, key: byPriority });
    expect(share("0")).toBeCloseTo(0.2, 1);
    expect(share("9") / share("5")).toBeGreaterThan(2.1);
    expect(share("9") / share("5")).toBeLessThan(2.8);
  });

  it("rules of one queue change nothing for the others", () => {
    const lanes = [lane("a", "x", 5, "strict"), lane("a", "x", 4, "strict"), lane("a", "x", 5, "plain"), lane("a", "x", 4, "plain")];
    const fixture = new PlanFixture(lanes, {}, { strict: { strictPriority: true } });
    const { share } = worked({ fixture, slots: 4, until: 20_000, key: ({ queue, priority }) => `${queue} ${priority}` });
    expect(share("strict 4")).toBe(0);
    expect(share("strict 5")).toBeCloseTo(0.5, 1);
    expect(share("plain 5") / share("plain 4")).toBeCloseTo(8 / 5, 0);
  });

  it("in a strict queue the lower priority waits without end, and with aging no longer than that", () => {
    const lanes = [lane("a", "x", 9), lane("a", "x", 0)];
    const run = (rules: PriorityRules) => worked({ fixture: new PlanFixture(lanes, {}, { q: rules }), slots: 2, until: 100_000, key: byPriority });
    expect(run({ strictPriority: true }).share("0"), "without it nothing ever").toBe(0);
    const withAging = run({ strictPriority: true, aging: 500 });
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
      fc.property(lanes, fc.integer({ min: 1, max: 500 }), caps, fc.nat({ max: 3 }), (all, size, rooms, pause) => {
        const aging = 2;
        const fixture = new PlanFixture(all, { a: 3, b: 0.2 }, { strict: { strictPriority: true, aging } });
        const room = (one: Lane) => rooms[all.indexOf(one)] ?? 0;
        const requestedAt = new Map<Lane, number>();
        for (let round = 0; round < 3; round++) {
          const now = round * pause;
          const isOverdue = all.some((one) => one.queue === "strict" && room(one) > 0 && now - (requestedAt.get(one) ?? 0) >= aging);
          const quotas = fixture.quotas(size, { now, room });
          for (const { lane: one, quota, share } of quotas) {
            requestedAt.set(one, now);
            expect(quota).toBeGreaterThan(0);
            expect(quota).toBeLessThanOrEqual(room(one));
            expect(Number.isInteger(quota)).toBe(true);
            share.take(quota);
          }
          const roomOfAll = all.reduce((sum, one) => sum + Math.min(size, room(one)), 0);
          const planned = quotas.reduce((sum, { quota }) => sum + quota, 0);
          // A job of a lane that waited too long is cut out of the room that its priority is taken to have.
          if (isOverdue) expect(planned).toBeLessThanOrEqual(Math.min(size, roomOfAll));
          else expect(planned).toBe(Math.min(size, roomOfAll));
          expect(new Set(quotas.map((quota) => quota.lane)).size, "each lane once").toBe(quotas.length);
        }
      }),
    );
  });
});

describe("a claim", () => {
  const tenants = (count: number, task = "x") => Array.from({ length: count }, (_, n) => lane(`tenant ${n}`, task));
  const jobs = (claims: readonly PlannedClaim[]) => claims.map((claim) => claim.jobs);

  it("is of as many jobs as can start soon: in free slots and within the look-ahead, without those in hand and requested", () => {
    const fixture = new PlanFixture(tenants(2));
    expect(jobs(fixture.claims(10))).toEqual([10]);
    expect(jobs(fixture.claims(10, { ahead: 5 }))).toEqual([15]);
    expect(jobs(fixture.claims(10, { ahead: 5, unstarted: 4 }))).toEqual([11]);
    expect(jobs(fixture.claims(10, { ahead: 5, unstarted: 15 }))).toEqual([]);
    expect(jobs(fixture.claims(10, { ahead: 100, maxJobsPerClaim: 20 }))).toEqual([20]);
    const [pending] = fixture.claims(7) as [PlannedClaim];
    fixture.add([]);
    expect(jobs(fixture.claims(10, { pending: [pending] })), "what a pending claim requests counts").toEqual([3]);
  });

  it("waits for a good batch where every free slot is covered", () => {
    const fixture = new PlanFixture(tenants(2));
    expect(jobs(fixture.claims(10, { ahead: 40, unstarted: 31 })), "of half the look-ahead").toEqual([]);
    expect(jobs(fixture.claims(10, { ahead: 40, unstarted: 30 }))).toEqual([20]);
    expect(jobs(fixture.claims(10, { ahead: 40, unstarted: 29, maxJobsPerClaim: 19 })), "or as large as claims get").toEqual([19]);
    expect(jobs(fixture.claims(32, { ahead: 1, unstarted: 31 })), "a free slot waits for nothing").toEqual([2]);
  });

  it("goes beside another one only after a wakeup, with a backlog, or where many lanes are not requested", () => {
    const fixture = new PlanFixture(tenants(40));
    const [pending] = fixture.claims(10) as [PlannedClaim];
    const second = () => fixture.claims(20, { pending: [pending] }).length;
    expect(pending.quotas, "it has asked ten of forty").toHaveLength(10);
    expect(second(), "thirty are not enough").toBe(0);
    fixture.add([]);
    expect(second(), "after a wakeup").toBe(1);
    expect(second(), "which is answered by one claim").toBe(0);
    fixture.add(tenants(42));
    fixture.claims(1);
    expect(second(), "thirty-two are enough").toBe(1);
    const few = new PlanFixture(tenants(2));
    const [full] = few.claims(2) as [PlannedClaim];
    recordAnswer(few.lanes, full, { jobs: full.quotas, more: [], isHeldBack: () => false });
    expect(few.claims(20, { pending: [full] }), "with a backlog").toHaveLength(1);
    expect(few.claims(20, { pending: [full, full] }), "never beside two").toHaveLength(0);
  });

  it("takes jobs that run at most once into free slots only, with nothing in hand or requested, and is then the only one", () => {
    const fixture = new PlanFixture([lane("a", "once"), lane("b", "x")]);
    const [claim] = fixture.claims(4, { ahead: 100 }) as [PlannedClaim];
    expect(claim).toMatchObject({ isExclusive: true, jobs: 4 });
    expect(claim.quotas.map((quota) => quota.lane.task).sort()).toEqual(["once", "x"]);
    fixture.add([]);
    expect(fixture.claims(100, { pending: [claim] }), "until it is answered").toEqual([]);
  });

  it("passes over jobs that run at most once while others are in hand, and waits for their moment after that", () => {
    const fixture = new PlanFixture([lane("a", "once"), lane("b", "x")]);
    const busy = { unstarted: 1 };
    const [others] = fixture.claims(4, busy) as [PlannedClaim];
    expect(others.quotas.map((quota) => quota.lane.task)).toEqual(["x"]);
    expect(others.isExclusive).toBe(false);
    expect(fixture.claims(4, busy), "once only").toEqual([]);
    expect(fixture.claims(4)[0]?.isExclusive).toBe(true);
    expect(
      fixture.claims(4, busy)[0]?.quotas.map((quota) => quota.lane.task),
      "and again",
    ).toEqual(["x"]);
    expect(new PlanFixture([lane("a", "once")]).claims(4, busy), "of nothing else").toEqual([]);
  });

  it("of lanes under limits goes apart from the others, one at a time", () => {
    const fixture = new PlanFixture([lane("a", "limited"), lane("a", "x")], {}, {}, ["limited"]);
    const claims = fixture.claims(10);
    expect(claims.map(({ isLimited, quotas }) => [isLimited, quotas.map((quota) => quota.lane.task)])).toEqual([
      [false, ["x"]],
      [true, ["limited"]],
    ]);
    expect(
      claims.map(({ sequence }) => sequence),
      "each has its number",
    ).toEqual([2, 3]);
    const limited = claims.filter(({ isLimited }) => isLimited);
    fixture.add([]);
    const [beside, ...none] = fixture.claims(20, { pending: limited }) as [PlannedClaim];
    expect(none).toEqual([]);
    expect(beside.isLimited).toBe(false);
    expect(beside.quotas.map((quota) => quota.lane.task)).toEqual(["x"]);
  });

  it("is cut to the room that its lanes share, and lanes that get none keep their turn", () => {
    const fixture = new PlanFixture([lane("a", "x"), lane("a", "y")]);
    let left = 3;
    const reserve = (_: Lane, wanted: number) => {
      const reserved = Math.min(left, wanted);
      left -= reserved;
      return reserved;
    };
    const [claim] = fixture.claims(6, { reserve }) as [PlannedClaim];
    expect(claim.jobs).toBe(3);
    expect(claim.quotas).toHaveLength(1);
    const [first] = claim.quotas;
    expect(fixture.claims(1)[0]?.quotas[0]?.lane.task, "the other one is next").not.toBe(first?.lane.task);
    expect(fixture.claims(6, { reserve }), "no room, no claim").toEqual([]);
  });
});

describe("the answer of a claim", () => {
  const claimOf = (fixture: PlanFixture, size: number) => fixture.claims(size)[0] as PlannedClaim;
  const answer = (fixture: PlanFixture, claim: PlannedClaim, given: readonly Lane[], more: readonly Lane[] = [], heldBack: readonly Lane[] = []) =>
    recordAnswer(fixture.lanes, claim, { jobs: given.map((one) => ({ lane: one })), more, isHeldBack: (one) => heldBack.includes(one) });
  const [a, b, c] = [lane("a"), lane("b"), lane("c")];

  it("shows which lanes have nothing left: those that gave less than was requested of them", () => {
    const fixture = new PlanFixture([a, b, c]);
    const claim = claimOf(fixture, 6);
    answer(fixture, claim, [a, a, { ...b }]);
    expect([...fixture.lanes.lanes()]).toEqual([a]);
    expect(fixture.lanes.hasBacklog, "a may have more").toBe(true);
    answer(fixture, claimOf(fixture, 6), [a]);
    expect(fixture.lanes.size).toBe(0);
    expect(fixture.lanes.hasBacklog).toBe(false);
  });

  it("shows nothing of lanes that a wakeup has named since", () => {
    const fixture = new PlanFixture([a, b]);
    const claim = claimOf(fixture, 6);
    fixture.add([{ ...b }]);
    answer(fixture, claim, []);
    expect([...fixture.lanes.lanes()]).toEqual([b]);
  });

  it("shows nothing of lanes that the store or a limit kept back", () => {
    const fixture = new PlanFixture([a, b, c]);
    answer(fixture, claimOf(fixture, 6), [], [{ ...a }], [b]);
    expect([...fixture.lanes.lanes()]).toEqual([a, b]);
    expect(fixture.lanes.hasBacklog).toBe(true);
  });

  it("that is full keeps all lanes, and tells that there may be more", () => {
    const fixture = new PlanFixture([a, b]);
    answer(fixture, claimOf(fixture, 2), [a, a]);
    expect(fixture.lanes.size).toBe(2);
    expect(fixture.lanes.hasBacklog).toBe(true);
  });

  it("of lanes under limits says nothing of the others, nor of how many jobs lanes have", () => {
    const limited = [lane("a", "limited"), lane("b", "limited")];
    const fixture = new PlanFixture(limited, {}, {}, ["limited"]);
    answer(fixture, claimOf(fixture, 2), limited);
    expect(fixture.lanes.hasBacklog).toBe(false);
    expect(fixture.lanes.minimumBatch).toBe(0);
    answer(fixture, claimOf(fixture, 2), []);
    expect(fixture.lanes.size).toBe(0);
  });
});
