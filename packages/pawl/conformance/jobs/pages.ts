import { expect } from "vitest";
import type { JobId } from "../../src/core/jobs/id.js";
import type { Test } from "../suite.js";
import { ANA, FAILED, START } from "../world.js";

const TEN = JSON.stringify("12345678");
const DONE = { kind: "succeeded", output: TEN } as const;

export function pageTests(test: Test): void {
  test("a page of jobs ends with the one that fills its bytes, and the next one goes on from there", async (w) => {
    const ids = [];
    for (let n = 0; n < 5; n++) ids.unshift(await w.add({ input: TEN }));
    const pages: unknown[] = [];
    let after: (typeof ids)[number] | undefined;
    do {
      const page = await w.store.jobs.list("everyone", {}, { limit: 10, bytes: 11, ...(after === undefined ? {} : { after }) });
      pages.push(page.jobs.map(({ id }) => id));
      after = page.next;
    } while (after !== undefined);
    expect(pages).toEqual([ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)]);
  });

  test("outputs and failures count as inputs do, and what is too large for any page is one by itself", async (w) => {
    const ids = [];
    for (const outcome of [DONE, FAILED]) {
      const id = await w.add({ input: "1" });
      ids.unshift(id);
      await w.run(id, outcome, [0]);
    }
    const small = await w.add({ input: "1" });
    const page = await w.store.jobs.list("everyone", {}, { limit: 10, bytes: 2 });
    expect(page.jobs.map(({ id }) => id)).toEqual([small, ids[0]]);
    const one = await w.store.jobs.list("everyone", {}, { limit: 10, bytes: 1, after: ids[0] as never });
    expect(one).toMatchObject({ jobs: [{ id: ids[1], output: TEN }] });
    expect(one.next).toBeUndefined();
  });

  test("a page of jobs with all that is kept of them ends with the one that fills its bytes, lines and outputs among them", async (w) => {
    const small = [await w.add({ input: "1" }), await w.add({ input: "1" })];
    const held = await w.hold({ limit: 1 });
    await w.store.records.log(ANA, [{ lease: held.claimed.lease, job: held.job.id, at: START, level: "info", message: "12345678", data: TEN }]);
    await w.settle(held, DONE, [0]);
    const later = await w.add({ input: "1", delay: 1_000 });
    const ids = [later, ...small.reverse()];
    const read = async (bytes: number, after?: JobId) => {
      const { jobs, next } = await w.store.jobs.whole("everyone", { limit: 10, bytes, ...(after === undefined ? {} : { after }) });
      return { ids: jobs.map(({ job }) => job.id), next };
    };
    expect(await read(1_000)).toEqual({ ids, next: undefined });
    expect(await read(2)).toEqual({ ids: ids.slice(0, 2), next: ids[1] });
    expect(await read(1, ids[1])).toEqual({ ids: ids.slice(2), next: undefined });
    const large = held.job.id;
    const { jobs } = await w.store.jobs.whole("everyone", { limit: 10 });
    expect(jobs.find(({ job }) => job.id === large)).toMatchObject({ history: [{ output: TEN }], logs: [{ message: "12345678", data: TEN }] });
  });

  test("a page of jobs with all that is kept of them has the tenant's own alone", async (w) => {
    const own = await w.add({ tenant: "umbrella" });
    await w.add();
    const { jobs } = await w.store.jobs.whole({ tenant: "umbrella" }, { limit: 10 });
    expect(jobs.map(({ job }) => job.id)).toEqual([own]);
  });

  test("a history and log lines are read in parts, by count and by bytes", async (w) => {
    const id = await w.add();
    for (let n = 0; n < 3; n++) {
      const held = await w.hold();
      const line = { lease: held.claimed.lease, job: id, level: "info" as const };
      await w.store.records.log(ANA, [
        { ...line, at: START + n, message: `${n}a` },
        { ...line, at: START + n, message: `${n}b`, data: TEN },
      ]);
      await w.settle(held, n === 2 ? DONE : FAILED, [0, 0]);
    }
    const { history, logs } = w.store.jobs;
    const lines = async (limit: number, after: number, bytes: number) =>
      (await logs("everyone", id, { limit, after, bytes })).map(({ message }) => message);
    expect(await lines(2, 0, 1_000)).toEqual(["0a", "0b"]);
    expect(await lines(10, 1, 1_000)).toEqual(["0b", "1a", "1b", "2a", "2b"]);
    expect(await lines(10, 1, 13)).toEqual(["0b", "1a"]);
    expect(await lines(10, 1, 1)).toEqual(["0b"]);
    expect(await lines(10, 6, 1_000)).toEqual([]);
    const all = await history("everyone", id);
    expect(all).toHaveLength(3);
    expect(await history("everyone", id, { limit: 2, after: 1, bytes: 1_000_000 })).toEqual(all.slice(1));
    expect(await history("everyone", id, { limit: 10, after: 0, bytes: 1 })).toEqual(all.slice(0, 1));
    expect(await history("everyone", id, { limit: 10, after: 3, bytes: 1_000 })).toEqual([]);
  });
}
