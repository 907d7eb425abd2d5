import { describe, expect, it } from "vitest";
import type { Priority } from "../jobs/job.js";
import { type Lane, laneKey } from "../jobs/lane.js";
import { plan } from "./claim-plan.js";
import type { Share } from "./fair-share.js";
import { LaneState } from "./lane-state.js";
import type { PolicyRecord } from "./policy.js";
import { PolicySet } from "./policy-set.js";

const lane = (tenant: string, task = "x", priority: Priority = 5, queue = "q"): Lane => ({ queue, priority, tenant, task });
const free = (_lane: Lane) => 1_000;

/** The lanes of a worker, and claims of them whose jobs are over at once. */
class LanesFixture {
  readonly lanes = new LaneState();
  #policies = new PolicySet([]);
  #now = 0;

  constructor(policies: readonly Omit<PolicyRecord, "version">[] = []) {
    this.change(policies);
  }

  add(...lanes: readonly Lane[]): void {
    this.lanes.add(lanes, this.#policies, this.#now, 0.5);
  }

  replace(lanes: readonly Lane[], since = this.lanes.nextSequence()): void {
    this.lanes.replace(lanes, since, this.#policies, this.#now, 0.5);
  }

  change(policies: readonly Omit<PolicyRecord, "version">[]): void {
    this.#policies = new PolicySet(policies as PolicyRecord[]);
    this.lanes.applyPolicies(this.#policies, this.#now, 0.5);
  }

  advance(ms: number): void {
    this.#now += ms;
  }

  shareOf(one: Lane): Share {
    return this.lanes.shareOf(one, this.#policies);
  }

  /** The quotas of a claim that is not sent. */
  plan(size: number, room = free) {
    const worker = { free: size, unstarted: 0, ahead: 0 };
    const load = { worker, pending: [], maxJobsPerClaim: 10_000, timeAhead: 0, now: this.#now, room, reserve: (_: Lane, jobs: number) => jobs };
    return plan(this.lanes, this.#policies, load).flatMap(({ quotas }) => quotas);
  }

  claim(size: number, room = free) {
    const quotas = this.plan(size, room);
    for (const { entry, quota } of quotas) for (let n = 0; n < quota; n++) this.#runOne(entry.tenant.share);
    return quotas;
  }

  #runOne(share: Share): void {
    share.take(1);
    share.begin(this.#now);
    share.take(-1);
    share.end(this.#now, this.#now + 1);
  }
}

describe("the lanes a worker knows", () => {
  it("come by tenant: one with thousands of lanes has one place in the line", () => {
    const fixture = new LanesFixture();
    for (let n = 0; n < 5_000; n++) fixture.add(lane("many", `task ${n}`));
    for (let n = 0; n < 9; n++) fixture.add(lane(`one ${n}`));
    const jobs = new Map<string, number>();
    for (let n = 0; n < 100; n++) for (const { lane: one, quota } of fixture.claim(10)) jobs.set(one.tenant, (jobs.get(one.tenant) ?? 0) + quota);
    for (const [tenant, count] of jobs) expect(count, tenant).toBe(100);
  });

  it("come in turn where there are more tenants than a claim looks at, and a newcomer's turn is next", () => {
    const fixture = new LanesFixture();
    for (let n = 0; n < 1_000; n++) fixture.add(lane(`tenant ${n}`));
    const seen = new Set<string>();
    for (let n = 0; n < 16; n++) for (const { lane: one } of fixture.claim(64)) seen.add(one.tenant);
    expect(seen.size).toBe(1_000);
    fixture.add(lane("new"));
    expect(fixture.claim(1)[0]?.lane.tenant).toBe("new");
  });

  it("are asked the more at a time the less each gives, and the fewer again when they give more", () => {
    const fixture = new LanesFixture();
    for (let n = 0; n < 1_000; n++) fixture.add(lane(`tenant ${n}`));
    const width = () => fixture.plan(1_000).length;
    const widths = (each: number) =>
      Array.from({ length: 4 }, () => {
        const asked = width();
        fixture.lanes.recordYield(asked, 1_000, each * asked);
        return asked;
      });
    expect(widths(1), "no more than 256").toEqual([128, 256, 256, 256]);
    expect(widths(4), "so that five are asked of each").toEqual([256, 200, 200, 200]);
    expect(widths(10), "no fewer than 128").toEqual([200, 128, 128, 128]);
    fixture.lanes.recordYield(10, 1_000, 10);
    expect(width(), "few were asked since few were wanted").toBe(128);
    fixture.lanes.recordYield(128, 1_000, 0);
    expect(width(), "none says nothing of how many each has when there are some").toBe(128);
  });

  it("are asked for twice as many jobs at a time when all gave what they were asked for, and for what they gave and one more when not", () => {
    const fixture = new LanesFixture();
    const after = (asked: number, limit: number, gave: number) => {
      fixture.lanes.recordYield(asked, limit, gave);
      return fixture.lanes.minimumBatch;
    };
    expect(fixture.lanes.minimumBatch, "nobody knows").toBe(0);
    expect(after(100, 1_000, 1_000)).toBe(20);
    expect(after(50, 1_000, 1_000)).toBe(40);
    expect(after(25, 1_000, 1_000), "no more than 64").toBe(64);
    expect(after(16, 1_000, 990), "some had fewer").toBe(62);
    expect(after(16, 1_000, 80), "they had five each").toBe(6);
    expect(after(16, 1_000, 0), "none says nothing of how many each has when there are some").toBe(6);
  });

  it("with no room do not hide those that have some", () => {
    const fixture = new LanesFixture();
    for (let n = 0; n < 1_000; n++) fixture.add(lane(`closed ${n}`));
    fixture.add(lane("open"));
    for (let n = 0; n < 5; n++) expect(fixture.claim(1, ({ tenant }: Lane) => (tenant === "open" ? 1 : 0))[0]?.lane.tenant).toBe("open");
  });

  it("are shared by weights that change while they are", () => {
    const fixture = new LanesFixture([{ kind: "tenant", name: "a", policy: { weight: 3 } }]);
    for (const tenant of ["a", "b"]) fixture.add(lane(tenant));
    const jobsOf = (tenant: string) => {
      let jobs = 0;
      for (let n = 0; n < 50; n++) for (const { lane: one, quota } of fixture.claim(4)) if (one.tenant === tenant) jobs += quota;
      return jobs;
    };
    expect(jobsOf("a") / 200).toBeCloseTo(0.75, 1);
    fixture.change([{ kind: "tenant", name: "b", policy: { weight: 4 } }]);
    expect(jobsOf("b") / 200).toBeCloseTo(0.8, 1);
  });

  it("of a queue that becomes strict give nothing to lower priorities, and with aging one job when their time has come", () => {
    const fixture = new LanesFixture();
    fixture.add(lane("a", "x", 9));
    fixture.add(lane("a", "x", 0));
    const priorities = () => fixture.claim(10).map(({ lane: { priority }, quota }) => [priority, quota]);
    expect(new Map(fixture.claim(100).map(({ lane: { priority }, quota }) => [priority, quota])).get(0)).toBeGreaterThan(0);
    fixture.change([{ kind: "queue", name: "q", policy: { strictPriority: true } }]);
    fixture.advance(1_000_000);
    for (let n = 0; n < 100; n++) expect(priorities()).toEqual([[9, 10]]);
    fixture.change([{ kind: "queue", name: "q", policy: { strictPriority: true, aging: 60_000 } }]);
    expect(priorities(), "it has waited long enough already").toEqual([
      [0, 1],
      [9, 9],
    ]);
    expect(priorities()).toEqual([[9, 10]]);
    fixture.advance(59_999);
    expect(priorities()).toEqual([[9, 10]]);
    fixture.advance(1);
    expect(priorities()).toEqual([
      [0, 1],
      [9, 9],
    ]);
  });

  it("of tenants that come once and never again leave nothing behind", () => {
    const fixture = new LanesFixture();
    for (let round = 0; round < 30; round++) {
      const fresh = Array.from({ length: 1_000 }, (_, n) => lane(`once ${round} ${n}`));
      for (const one of fresh) fixture.add(one);
      fixture.claim(1_000);
      fixture.replace([]);
    }
    expect(fixture.lanes.size).toBe(0);
    expect(fixture.lanes.tenants).toBeLessThanOrEqual(10_001);
  });

  it("tell how long jobs take where several tenants have work, of as many as are asked for", () => {
    const fixture = new LanesFixture();
    fixture.add(lane("a"));
    fixture.claim(1);
    expect(fixture.lanes.tenantDurations(10), "there is nobody to compare with").toBeUndefined();
    for (const name of ["b", "c"]) fixture.add(lane(name));
    fixture.claim(30);
    expect(fixture.lanes.tenantDurations(10)).toEqual([
      ["a", 1],
      ["b", 1],
      ["c", 1],
    ]);
    expect(fixture.lanes.tenantDurations(2)).toHaveLength(2);
    fixture.lanes.forget(laneKey(lane("c")), fixture.lanes.nextSequence());
    expect(
      fixture.lanes.tenantDurations(10)?.map(([tenant]) => tenant),
      "who has nothing left is nobody's rival",
    ).toEqual(["a", "b"]);
  });

  it("are forgotten one by one, and tenants with them once they owe nothing", () => {
    const fixture = new LanesFixture();
    for (let n = 0; n < 300; n++) fixture.add(lane(`tenant ${n % 100}`, `task ${n}`));
    fixture.lanes.forget(laneKey(lane("tenant 0", "task 0")), 0);
    expect(fixture.lanes.size, "heard of since").toBe(300);
    fixture.lanes.forget(laneKey(lane("tenant 0", "task 0")), 1);
    expect(fixture.lanes.size).toBe(299);
    fixture.replace([lane("tenant 1", "task 1"), lane("fresh")]);
    expect(fixture.lanes.size).toBe(2);
    expect(new Set(fixture.claim(10).map(({ lane: one }) => one.tenant))).toEqual(new Set(["tenant 1", "fresh"]));
  });

  it("stay when a wakeup names them while a poll that does not find them is under way", () => {
    const fixture = new LanesFixture();
    fixture.add(lane("old"));
    const since = fixture.lanes.nextSequence();
    fixture.add(lane("new"));
    fixture.replace([], since);
    expect([...fixture.lanes.lanes()]).toEqual([lane("new")]);
  });

  it.each([
    ["gets rules of its own", [], [{ kind: "queue", name: "ruled", policy: { strictPriority: true } }]],
    ["loses its rules", [{ kind: "queue", name: "ruled", policy: { strictPriority: true } }], []],
  ] as const)("are charged to the shares they are claimed by, when a queue beside others %s", (_what, before, after) => {
    const fixture = new LanesFixture(before);
    const lanes = [lane("a", "x", 5, "ruled"), lane("a"), lane("b")];
    fixture.add(...lanes);
    fixture.change(after);
    const quotas = fixture.claim(12);
    expect(new Set(quotas.map((quota) => quota.lane))).toEqual(new Set(lanes));
    for (const { entry } of quotas) expect(fixture.shareOf(entry.lane)).toBe(entry.tenant.share);
  });
});
