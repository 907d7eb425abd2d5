import { expect } from "vitest";
import type { IngestDemand, IngestLimit } from "../../src/core/limits/ingest-limit.js";
import type { TenantPolicy } from "../../src/core/sharing/policy.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { HOUR, SECOND, SUCCEEDED, type World } from "../world.js";

const ACME = { kind: "tenant", name: "acme" } as const;
const MAIL = { kind: "queue", name: "mail" } as const;
const RATE = { limit: 10, per: SECOND, burst: 20 };
const demand = (...parts: readonly (readonly [limit: number, jobs: number])[]): IngestDemand => ({
  perLimit: parts.map(([limit, jobs]) => ({ limit, jobs, waiting: jobs })),
});
const take = async (w: World, limits: readonly IngestLimit[], ...demands: readonly IngestDemand[]) =>
  (await w.store.ingest.take(limits, demands)).map((answer) => (answer.kind === "admitted" ? "admitted" : `${answer.by.kind} ${answer.limit}`));
/** Long enough for any store to count again. */
const later = (w: World) => w.clock.advance(11 * SECOND);

export function ingestTests(test: Test): void {
  test("the limits are those of the policies that have one, with the version of the last change", async (w) => {
    const before = await w.store.ingest.limits();
    expect(before?.limits).toEqual([]);
    expect(await w.store.ingest.limits(before?.version)).toBeUndefined();
    await w.store.policies.put(ACME, { weight: 2, ingest: { depth: 5 } }, 0);
    await w.store.policies.put(MAIL, { ingest: { rate: RATE } }, 0);
    await w.store.policies.put({ kind: "tenant", name: "umbrella" }, { weight: 3 }, 0);
    const found = await w.store.ingest.limits(before?.version);
    expect(found?.limits).toEqual([
      { ...MAIL, rate: RATE },
      { ...ACME, depth: 5 },
    ]);
    expect(await w.store.ingest.limits(found?.version)).toBeUndefined();
    const version = (await w.store.policies.get(ACME))?.version ?? 0;
    await w.store.policies.put(ACME, { weight: 2 }, version);
    expect((await w.store.ingest.limits(found?.version))?.limits).toEqual([{ ...MAIL, rate: RATE }]);
  });

  test("a rate lets in its burst at once and then so many per time, for all who ask", async (w) => {
    const limits = [{ ...ACME, rate: RATE }];
    expect(await take(w, limits, demand([0, 15]), demand([0, 10]), demand([0, 5]))).toEqual(["admitted", "tenant rate", "admitted"]);
    expect(await w.store.ingest.take(limits, [demand([0, 5])])).toEqual([{ kind: "refused", by: ACME, limit: "rate", retryAfter: 500 }]);
    w.clock.advance(500);
    expect(await take(w, limits, demand([0, 5]), demand([0, 1]))).toEqual(["admitted", "tenant rate"]);
  });

  test("what is remembered of a limit stays while it is changed, and goes when it goes", async (w) => {
    const attempts = { ...ACME, rate: RATE };
    const put = async (policy: TenantPolicy) => w.store.policies.put(ACME, policy, (await w.store.policies.get(ACME))?.version ?? 0);
    await put({ ingest: { rate: RATE } });
    expect(await take(w, [attempts], demand([0, 20]), demand([0, 1]))).toEqual(["admitted", "tenant rate"]);
    await put({ weight: 2, ingest: { rate: RATE } });
    expect(await take(w, [attempts], demand([0, 1])), "changed").toEqual(["tenant rate"]);
    await put({ weight: 2 });
    await put({ weight: 2, ingest: { rate: RATE } });
    expect(await take(w, [attempts], demand([0, 20])), "gone, and set anew").toEqual(["admitted"]);
  });

  test("limits of one name and different kinds are different limits", async (w) => {
    const limits: IngestLimit[] = [
      { kind: "tenant", name: "mail", rate: RATE },
      { ...MAIL, rate: RATE },
    ];
    expect(await take(w, limits, demand([0, 20]), demand([1, 20]), demand([0, 1]), demand([1, 1]))).toEqual([
      "admitted",
      "admitted",
      "tenant rate",
      "queue rate",
    ]);
  });

  test("a demand that one of its limits refuses takes nothing of the others", async (w) => {
    const limits: IngestLimit[] = [
      { ...MAIL, rate: RATE },
      { ...ACME, rate: { ...RATE, burst: 5 } },
    ];
    expect(await take(w, limits, demand([0, 4], [1, 4]), demand([0, 16], [1, 4]), demand([0, 16]))).toEqual(["admitted", "tenant rate", "admitted"]);
  });

  test("the depth of a queue is what is ready or parked in it, whoever's and of whatever task", async (w) => {
    const limits = [{ ...MAIL, depth: 5 }];
    await w.enqueue({ queue: "mail" }, { queue: "mail", tenant: "umbrella" }, { queue: "mail", task: "other" }, { queue: "mail", delay: HOUR }, {});
    await w.store.jobs.pause("everyone", await w.add({ queue: "mail" }));
    expect(await take(w, limits, demand([0, 2]))).toEqual(["queue depth"]);
    expect(await take(w, limits, demand([0, 1]), demand([0, 1]))).toEqual(["admitted", "queue depth"]);
  });

  test("the depth of a tenant is what is ready of it, in whatever queue, priority and task", async (w) => {
    const limits = [{ ...ACME, depth: 8 }];
    await w.enqueue({}, {}, {}, { queue: "mail" }, { priority: 9 }, { task: "other" }, { tenant: "umbrella" }, { delay: HOUR });
    expect(await take(w, limits, demand([0, 3]))).toEqual(["tenant depth"]);
    expect(await take(w, limits, demand([0, 2]), demand([0, 1]))).toEqual(["admitted", "tenant depth"]);
  });

  test("suspects count, too", async (w) => {
    await w.suspect();
    expect(await take(w, [{ ...ACME, depth: 1 }], demand([0, 1]))).toEqual(["tenant depth"]);
  });

  test("there is room again when jobs have started", async (w) => {
    const limits: IngestLimit[] = [
      { ...MAIL, depth: 3 },
      { ...ACME, depth: 3 },
    ];
    for (let n = 0; n < 3; n++) await w.add({ queue: "mail" });
    expect(await take(w, limits, demand([0, 1]), demand([1, 1]))).toEqual(["queue depth", "tenant depth"]);
    const lane = { queue: "mail", priority: 5, tenant: "acme", task: "work" } as const;
    await w.settle(await w.hold({ lanes: [lane] }), SUCCEEDED);
    later(w);
    expect(await take(w, limits, demand([0, 2]), demand([1, 2]))).toEqual(["queue depth", "tenant depth"]);
    later(w);
    expect(await take(w, limits, demand([0, 1]), demand([1, 1]))).toEqual(["admitted", "admitted"]);
  });

  test("jobs that came to wait by other ways are seen in time", async (w) => {
    const limits = [{ ...ACME, depth: 2 }];
    expect(await take(w, limits, demand([0, 1]))).toEqual(["admitted"]);
    await w.enqueue({ delay: SECOND }, { delay: SECOND });
    later(w);
    await dutiesOf(w.store).promote(10);
    expect(await take(w, limits, demand([0, 1]))).toEqual(["tenant depth"]);
  });

  test("names with signs in them are limited like others", async (w) => {
    const odd = { kind: "queue", name: `a "b" \\ {c}, ü` } as const;
    expect(await take(w, [{ ...odd, rate: { ...RATE, burst: 1 } }], demand([0, 1]), demand([0, 1]))).toEqual(["admitted", "queue rate"]);
  });
}
