import { expect } from "vitest";
import { fingerprintOf } from "../../src/core/jobs/fingerprint.js";
import type { JobId } from "../../src/core/jobs/id.js";
import type { Outcome } from "../../src/core/jobs/outcome.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { KILLED, lane, MINUTE, RELEASED, type Spec, START, type World } from "../world.js";

const dying = (message: string, name = "Error"): Outcome => ({ kind: "failed", failure: { kind: "error", name, message }, retryable: false });

async function die(w: World, message: string, spec: Spec = {}, name?: string): Promise<JobId> {
  const id = await w.add(spec);
  await w.run(id, dying(message, name), undefined, { lanes: [lane(spec)] });
  return id;
}

export function deadTests(test: Test): void {
  test("dead jobs are grouped by what they died of, the largest group first", async (w) => {
    expect(await w.store.dead.groups("everyone", {}, 10)).toEqual([]);
    await die(w, "no user 17");
    w.clock.advance(MINUTE);
    const last = await die(w, "no user 4711");
    const odd = await die(w, "the disk is full");
    await w.add();
    expect(await w.store.dead.groups("everyone", {}, 10)).toEqual([
      {
        fingerprint: fingerprintOf("work", { kind: "error", name: "Error", message: "no user 1" }),
        count: 2,
        firstAt: START,
        lastAt: START + MINUTE,
        sample: await w.get(last),
      },
      {
        fingerprint: fingerprintOf("work", { kind: "error", name: "Error", message: "the disk is full" }),
        count: 1,
        firstAt: START + MINUTE,
        lastAt: START + MINUTE,
        sample: await w.get(odd),
      },
    ]);
    expect(await w.store.dead.groups("everyone", {}, 1)).toHaveLength(1);
  });

  test("groups of the same size are told by the one that grew last", async (w) => {
    await die(w, "earlier");
    w.clock.advance(MINUTE);
    await die(w, "later");
    expect((await w.store.dead.groups("everyone", {}, 10)).map(({ sample }) => sample.failure?.message)).toEqual(["later", "earlier"]);
  });

  test("groups are of a scope, a queue, a task or a failure", async (w) => {
    await die(w, "a", { tenant: "acme", queue: "mail" });
    await die(w, "a", { tenant: "globex", queue: "mail" });
    await die(w, "a", { tenant: "globex", queue: "post", task: "print" }, "TypeError");
    const counts = async (...given: Parameters<typeof w.store.dead.groups>) => (await w.store.dead.groups(...given)).map(({ count }) => count);
    expect(await counts("everyone", {}, 10)).toEqual([2, 1]);
    expect(await counts({ tenant: "acme" }, {}, 10)).toEqual([1]);
    expect(await counts({ tenant: "globex" }, {}, 10)).toEqual([1, 1]);
    expect(await counts({ tenant: "nobody" }, {}, 10)).toEqual([]);
    expect(await counts("everyone", { queue: "post" }, 10)).toEqual([1]);
    expect(await counts("everyone", { task: "work" }, 10)).toEqual([2]);
    expect(await counts("everyone", { failure: "TypeError" }, 10)).toEqual([1]);
    expect(await counts("everyone", { failure: "error", queue: "mail" }, 10)).toEqual([2]);
  });

  test("jobs are listed by what they died of, also those that nobody has grouped yet", async (w) => {
    const a = await die(w, "no user 17");
    const b = await die(w, "no user 18");
    await die(w, "the disk is full");
    const fingerprint = fingerprintOf("work", { kind: "error", name: "Error", message: "no user 0" });
    const found = async () => (await w.store.jobs.list("everyone", { fingerprint }, { limit: 10 })).jobs.map(({ id }) => id);
    expect(await found()).toEqual([b, a]);
    expect(await w.store.jobs.list("everyone", { fingerprint, state: "scheduled" }, { limit: 10 })).toEqual({ jobs: [] });
    await w.store.jobs.redrive("everyone", a, {});
    expect(await found()).toEqual([b]);
  });

  test("a job that is redriven and dies of something else is in another group", async (w) => {
    const id = await die(w, "first");
    expect((await w.store.dead.groups("everyone", {}, 10)).map(({ sample }) => sample.failure?.message)).toEqual(["first"]);
    await w.store.jobs.redrive("everyone", id, {});
    expect(await w.store.dead.groups("everyone", {}, 10)).toEqual([]);
    await w.run(id, KILLED);
    expect((await w.store.dead.groups("everyone", {}, 10)).map(({ sample, count }) => [sample.failure?.message, count])).toEqual([["never", 1]]);
  });

  test("jobs are listed by when they are due", async (w) => {
    const ids: JobId[] = [];
    for (const delay of [0, 10, 20, 30]) ids.push(await w.add({ delay: delay * MINUTE }));
    const [a, b, c, d] = ids as [JobId, JobId, JobId, JobId];
    const found = async (from?: number, before?: number, after?: JobId) =>
      (
        await w.store.jobs.list(
          "everyone",
          {
            ...(from === undefined ? {} : { since: START + from * MINUTE }),
            ...(before === undefined ? {} : { until: START + before * MINUTE }),
          },
          { limit: 10, ...(after === undefined ? {} : { after }) },
        )
      ).jobs.map(({ id }) => id);
    expect(await found(10)).toEqual([d, c, b]);
    expect(await found(undefined, 10)).toEqual([a]);
    expect(await found(10, 30)).toEqual([c, b]);
    expect(await found(10, 30, c)).toEqual([b]);
    expect(await found(0, 31, b)).toEqual([a]);
    expect(await found(30, 10)).toEqual([]);
  });

  test("a checkup tells of leases that ended and that nobody took back", async (w) => {
    expect(await w.store.checkup.look()).toMatchObject({ now: START, expired: { leases: 0, jobs: 0, longest: 0 }, missingMonths: [], hears: true });
    for (let n = 0; n < 3; n++) await w.add();
    const [held] = await w.holdAll({ limit: 2 });
    await w.holdAll({ limit: 1, duration: 10 * MINUTE });
    w.clock.advance(2 * MINUTE);
    expect((await w.store.checkup.look()).expired).toEqual({ leases: 1, jobs: 2, longest: 2 * MINUTE - 15_000 });
    if (held !== undefined) await w.settle(held, RELEASED);
    await dutiesOf(w.store).reap(10);
    expect((await w.store.checkup.look()).expired).toEqual({ leases: 0, jobs: 0, longest: 0 });
  });
}
