import { describe, expect, it } from "vitest";
import type { Priority } from "../../core/jobs/job.js";
import type { Lane } from "../../core/jobs/lane.js";
import { planClaim } from "../../core/sharing/claim-plan.js";
import type { PolicyRecord } from "../../core/sharing/policy.js";
import { LanesWithWork } from "./lanes-with-work.js";
import { PolicyCache } from "./policy-cache.js";

const lane = (tenant: string, task = "x", priority: Priority = 5, queue = "q"): Lane => ({ queue, priority, tenant, task });
const free = (_lane: Lane) => 1_000;

async function bookWith(policies: readonly Omit<PolicyRecord, "version">[] = []) {
  let now = 0;
  let version = 0;
  let stored = policies;
  const policyCache = new PolicyCache();
  const follow = async () => {
    version++;
    await policyCache.refresh(
      { list: async () => ({ policies: stored as PolicyRecord[], version: String(version) }), get: never, put: never },
      String(version),
    );
  };
  await follow();
  const lanes = new LanesWithWork(policyCache, { monotonic: () => now, random: () => 0.5 });
  /** One claim, whose jobs are over at once. */
  const claim = (size: number, roomOf = free) => {
    const quotas = planClaim(lanes.root, lanes.open(roomOf), size, now);
    lanes.recordPlan(quotas);
    for (const { share, quota } of quotas) for (let n = 0; n < quota; n++) runOne(share);
    return quotas;
  };
  const runOne = (share: ReturnType<typeof lanes.shareOf>) => {
    share.take(1);
    share.begin(now);
    share.take(-1);
    share.end(now, now + 1);
  };
  return {
    lanes,
    claim,
    advance: (ms: number) => {
      now += ms;
    },
    change: async (next: readonly Omit<PolicyRecord, "version">[]) => {
      stored = next;
      await follow();
      lanes.applyPolicies();
    },
  };
}

function never(): never {
  throw new Error("not asked for");
}

describe("the lanes a worker knows", () => {
  it("come by tenant: one with thousands of lanes has one place in the line", async () => {
    const { lanes, claim } = await bookWith();
    for (let n = 0; n < 5_000; n++) lanes.add(lane("many", `task ${n}`), 1);
    for (let n = 0; n < 9; n++) lanes.add(lane(`one ${n}`), 1);
    const jobs = new Map<string, number>();
    for (let n = 0; n < 100; n++) for (const { lane: one, quota } of claim(10)) jobs.set(one.tenant, (jobs.get(one.tenant) ?? 0) + quota);
    for (const [tenant, count] of jobs) expect(count, tenant).toBe(100);
  });

  it("come in turn where there are more tenants than a claim looks at, and a newcomer's turn is next", async () => {
    const { lanes, claim } = await bookWith();
    for (let n = 0; n < 1_000; n++) lanes.add(lane(`tenant ${n}`), 1);
    const seen = new Set<string>();
    for (let n = 0; n < 16; n++) for (const { lane: one } of claim(64)) seen.add(one.tenant);
    expect(seen.size).toBe(1_000);
    lanes.add(lane("new"), 1);
    expect(claim(1)[0]?.lane.tenant).toBe("new");
  });

  it("are asked the more at a time the less each gives, and the fewer again when they give more", async () => {
    const { lanes } = await bookWith();
    for (let n = 0; n < 1_000; n++) lanes.add(lane(`tenant ${n}`), 1);
    const width = () => lanes.open(free)[0]?.priorities[0]?.tenants.length ?? 0;
    const widths = (each: number) =>
      Array.from({ length: 4 }, () => {
        const asked = width();
        lanes.recordYield(asked, 1_000, each * asked);
        return asked;
      });
    expect(widths(1), "no more than 256").toEqual([128, 256, 256, 256]);
    expect(widths(4), "so that five are asked of each").toEqual([256, 200, 200, 200]);
    expect(widths(10), "no fewer than 128").toEqual([200, 128, 128, 128]);
    lanes.recordYield(10, 1_000, 10);
    expect(width(), "few were asked since few were wanted").toBe(128);
    lanes.recordYield(128, 1_000, 0);
    expect(width(), "none says nothing of how many each has when there are some").toBe(128);
  });

  it("are asked for twice as many jobs at a time when all gave what they were asked for, and for what they gave and one more when not", async () => {
    const { lanes } = await bookWith();
    const after = (asked: number, limit: number, gave: number) => {
      lanes.recordYield(asked, limit, gave);
      return lanes.minimumBatch;
    };
    expect(lanes.minimumBatch, "nobody knows").toBe(0);
    expect(after(100, 1_000, 1_000)).toBe(20);
    expect(after(50, 1_000, 1_000)).toBe(40);
    expect(after(25, 1_000, 1_000), "no more than 64").toBe(64);
    expect(after(16, 1_000, 990), "some had fewer").toBe(62);
    expect(after(16, 1_000, 80), "they had five each").toBe(6);
    expect(after(16, 1_000, 0), "none says nothing of how many each has when there are some").toBe(6);
  });

  it("with no room do not hide those that have some", async () => {
    const { lanes, claim } = await bookWith();
    for (let n = 0; n < 1_000; n++) lanes.add(lane(`closed ${n}`), 1);
    lanes.add(lane("open"), 1);
    for (let n = 0; n < 5; n++) expect(claim(1, ({ tenant }: Lane) => (tenant === "open" ? 1 : 0))[0]?.lane.tenant).toBe("open");
  });

  it("are shared by weights that change while they are", async () => {
    const { lanes, claim, change } = await bookWith([{ kind: "tenant", name: "a", policy: { weight: 3 } }]);
    for (const tenant of ["a", "b"]) lanes.add(lane(tenant), 1);
    const jobsOf = (tenant: string) => {
      let jobs = 0;
      for (let n = 0; n < 50; n++) for (const { lane: one, quota } of claim(4)) if (one.tenant === tenant) jobs += quota;
      return jobs;
    };
    expect(jobsOf("a") / 200).toBeCloseTo(0.75, 1);
    await change([{ kind: "tenant", name: "b", policy: { weight: 4 } }]);
    expect(jobsOf("b") / 200).toBeCloseTo(0.8, 1);
  });

  it("of a queue that becomes strict give nothing to lower priorities, and with aging one job when their time has come", async () => {
    const { lanes, claim, change, advance } = await bookWith();
    lanes.add(lane("a", "x", 9), 1);
    lanes.add(lane("a", "x", 0), 1);
    const priorities = () => claim(10).map(({ lane: { priority }, quota }) => [priority, quota]);
    expect(new Map(claim(100).map(({ lane: { priority }, quota }) => [priority, quota])).get(0)).toBeGreaterThan(0);
    await change([{ kind: "queue", name: "q", policy: { strictPriority: true } }]);
    advance(1_000_000);
    for (let n = 0; n < 100; n++) expect(priorities()).toEqual([[9, 10]]);
    await change([{ kind: "queue", name: "q", policy: { strictPriority: true, aging: 60_000 } }]);
    expect(priorities(), "it has waited long enough already").toEqual([
      [0, 1],
      [9, 9],
    ]);
    expect(priorities()).toEqual([[9, 10]]);
    advance(59_999);
    expect(priorities()).toEqual([[9, 10]]);
    advance(1);
    expect(priorities()).toEqual([
      [0, 1],
      [9, 9],
    ]);
  });

  it("of tenants that come once and never again leave nothing behind", async () => {
    const { lanes, claim } = await bookWith();
    for (let round = 0; round < 30; round++) {
      const fresh = Array.from({ length: 1_000 }, (_, n) => lane(`once ${round} ${n}`));
      for (const one of fresh) lanes.add(one, round);
      claim(1_000);
      lanes.replace([], round + 1);
    }
    expect(lanes.size).toBe(0);
    expect(lanes.remembered).toBeLessThanOrEqual(10_001);
  });

  it("tell how long jobs take where several tenants have work, of as many as are asked for", async () => {
    const { lanes, claim } = await bookWith();
    lanes.add(lane("a"), 1);
    claim(1);
    expect(lanes.tenantDurations(10), "there is nobody to compare with").toBeUndefined();
    for (const name of ["b", "c"]) lanes.add(lane(name), 1);
    claim(30);
    expect(lanes.tenantDurations(10)).toEqual([
      ["a", 1],
      ["b", 1],
      ["c", 1],
    ]);
    expect(lanes.tenantDurations(2)).toHaveLength(2);
    lanes.forget(lane("c"), 1);
    expect(
      lanes.tenantDurations(10)?.map(([tenant]) => tenant),
      "who has nothing left is nobody's rival",
    ).toEqual(["a", "b"]);
  });

  it("are forgotten one by one, and tenants with them once they owe nothing", async () => {
    const { lanes, claim } = await bookWith();
    for (let n = 0; n < 300; n++) lanes.add(lane(`tenant ${n % 100}`, `task ${n}`), 1);
    lanes.forget(lane("tenant 0", "task 0"), 0);
    expect(lanes.size, "heard of since").toBe(300);
    lanes.forget(lane("tenant 0", "task 0"), 1);
    expect(lanes.size).toBe(299);
    lanes.replace([lane("tenant 1", "task 1"), lane("fresh")], 1);
    expect(lanes.size).toBe(2);
    expect(new Set(claim(10).map(({ lane: one }) => one.tenant))).toEqual(new Set(["tenant 1", "fresh"]));
  });
});
