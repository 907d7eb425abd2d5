import { expect } from "vitest";
import type { JobId } from "../../src/core/jobs/id.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { ANA, BOB, FAILED, LEASE, lane, MINUTE, RELEASED, START } from "../world.js";

export function claimTests(test: Test): void {
  test("a claim takes the jobs of a lane in order, up to its quota", async (w) => {
    const ids = [await w.add(), await w.add(), await w.add()];
    expect(await w.claimIds({ limit: 2 })).toEqual(ids.slice(0, 2));
    expect(await w.claimIds({ limit: 2 })).toEqual(ids.slice(2));
    expect(await w.claim()).toBeUndefined();
  });

  test("a claimed job comes with all that a worker needs", async (w) => {
    const id = await w.add({ input: '{"n":1}', options: { timeout: 5 }, delay: MINUTE });
    w.clock.advance(2 * MINUTE);
    await dutiesOf(w.store).promote(10);
    const claimed = await w.claim();
    expect(claimed).toEqual({
      lease: claimed?.lease,
      now: START + 2 * MINUTE,
      jobs: [
        { id, lane: lane(), input: '{"n":1}', options: { timeout: 5 }, dueAt: START + MINUTE, attempts: 0, crashes: 0, at: claimed?.jobs[0]?.at },
      ],
    });
  });

  test("a claimed job is running, and nobody else gets it", async (w) => {
    const id = await w.add();
    await w.claim({ worker: ANA });
    expect(await w.state(id)).toBe("running");
    expect(await w.claim({ worker: BOB })).toBeUndefined();
  });

  test("an empty store gives nothing", async (w) => {
    expect(await w.claim()).toBeUndefined();
    expect(await w.claimSuspect()).toBeUndefined();
  });

  test("nothing is taken without a lane or a quota", async (w) => {
    await w.add();
    expect(await w.claim({ lanes: [] })).toBeUndefined();
    expect(await w.claim({ limit: 0 })).toBeUndefined();
    expect(await w.store.leases.claim({ worker: ANA, quotas: [{ lane: lane(), quota: 0 }], duration: LEASE })).toBeUndefined();
  });

  test("jobs come lane by lane in the order these were offered, whenever they became ready", async (w) => {
    const a: JobId[] = [];
    const b: JobId[] = [];
    const c: JobId[] = [];
    for (let i = 0; i < 3; i++) {
      a.push(await w.add());
      b.push(await w.add({ task: "b" }));
      c.push(...(await w.store.jobs.enqueue([1, 2].map(() => w.newJob({ task: "c" })))).map((answer) => (answer as { id: JobId }).id));
    }
    const lanes = ["c", "none", "b"].map((task) => lane({ task }));
    expect(await w.claimIds({ lanes: [...lanes, lane()] })).toEqual([...c, ...b, ...a]);
  });

  test("a lane gives at most its quota", async (w) => {
    const [a1, a2, b1, b2] = [await w.add(), await w.add(), await w.add({ task: "b" }), await w.add({ task: "b" })];
    const quotas = [
      { lane: lane({ task: "b" }), quota: 1 },
      { lane: lane(), quota: 1 },
    ];
    const claim = async () => (await w.store.leases.claim({ worker: ANA, quotas, duration: LEASE }))?.jobs.map(({ id }) => id);
    expect(await claim(), "lanes in the order they were offered").toEqual([b1, a1]);
    expect(await claim()).toEqual([b2, a2]);
    expect(await claim()).toBeUndefined();
  });

  test("a batch in a lane offered later does not come before a job alone in one offered earlier", async (w) => {
    const ids = (await w.enqueue({ task: "b" }, { task: "b" }, {})).map((one) => (one as { id: JobId }).id);
    const [b1, b2, alone] = ids as [JobId, JobId, JobId];
    const lanes = [lane(), lane({ task: "b" }), lane({ task: "c" })];
    const last = await w.add({ task: "c" });
    expect(await w.claimIds({ lanes, limit: 1 })).toEqual([alone, b1, last]);
    expect(await w.claimIds({ lanes, limit: 1 })).toEqual([b2]);
  });

  test("a lane that gives some of a batch gives the others next, in their order and before what came later", async (w) => {
    const ids = (await w.enqueue(...Array.from({ length: 150 }, () => ({})))).map((one) => (one as { id: JobId }).id);
    ids.push(await w.add());
    const lanes = [lane({ task: "b" }), lane()];
    await w.enqueue({ task: "b" }, { task: "b" }, { task: "b" });
    const seen: JobId[] = [];
    for (const limit of [1, 70, 1, 5, 63, 64]) {
      const claimed = await w.claim({ lanes, limit });
      seen.push(...(claimed?.jobs ?? []).flatMap((job) => (job.lane.task === lane().task ? job.id : [])));
    }
    expect(seen).toEqual(ids);
  });

  test("every job comes with its own input and options, however it was enqueued and whatever else is claimed with it", async (w) => {
    const other = { task: "b" };
    const small = (from: number, of = {}) => Array.from({ length: 5 }, (_, i) => ({ ...of, input: `{"n":${from + i},"of":"a\\"b,{}\\\\ü"}` }));
    const specs = [
      small(0),
      [...small(5, other), ...small(10)],
      [{ input: "null" }, { input: '"\\u001e\\u001f"' }, { input: "[ 1,\t2 ]" }, { input: '"\\ud83d"' }],
      [{ input: "[20]" }, { input: "null", options: { timeout: 5 } }, { input: '"\\u001e\\u001f"' }],
      [{ input: `{"text":"${"x".repeat(500)}"}` }, { input: "1" }],
      [{ ...other, input: "true" }],
      small(30, other),
      [
        ...small(50),
        { input: "[55]", options: { timeout: 6 } },
        ...small(56),
        { input: "[61]", options: { timeout: 7, tags: ['a,"b"'] } },
        ...small(62, other),
      ],
      [{ input: "{}" }],
      small(40),
    ];
    const expected = new Map<JobId, unknown>();
    for (const batch of specs) {
      const answers = await w.enqueue(...batch);
      answers.forEach((answer, index) => {
        const { input, options } = batch[index] as { input: string; options?: object };
        expected.set((answer as { id: JobId }).id, { input, options });
      });
    }
    const lanes = [lane(other), lane()];
    const claimed = [];
    for (const spec of [
      { limit: 3 },
      { limit: 2, lanes },
      { limit: 7, lanes },
      { limit: 30 },
      { limit: 4 },
      { limit: 8 },
      { lanes: [lane(other)] },
      { lanes },
    ])
      claimed.push(...((await w.claim(spec))?.jobs ?? []));
    expect(new Map(claimed.map(({ id, input, options }) => [id, { input, options }]))).toEqual(expected);
    expect(claimed).toHaveLength(expected.size);
  });

  test("only the lanes offered give: another queue, priority, tenant or task does not", async (w) => {
    for (const other of [{ queue: "x" }, { priority: 9 }, { tenant: "x" }, { task: "x" }] as const) await w.add(other);
    expect(await w.claim()).toBeUndefined();
    expect(await w.claimIds({ lanes: [lane({ queue: "x" }), lane({ tenant: "x" })] })).toHaveLength(2);
  });

  test("all jobs of a claim are in one lease, and lease numbers grow", async (w) => {
    await w.add();
    await w.add();
    await w.add();
    const first = await w.claim({ limit: 2 });
    const second = await w.claim();
    expect(first?.jobs).toHaveLength(2);
    expect(first?.lease).toMatch(/^\d+$/);
    expect(BigInt(second?.lease ?? 0)).toBeGreaterThan(BigInt(first?.lease ?? 0));
  });

  test("jobs that wait for their time, for a parent or for a resume are not claimed", async (w) => {
    const parent = await w.add({ task: "parent" });
    await w.add({ delay: 1 });
    await w.add({ after: [parent] });
    await w.store.jobs.pause("everyone", await w.add());
    expect(await w.claim()).toBeUndefined();
  });

  test("a released job goes to the back of its lane", async (w) => {
    const [first, second] = [await w.add(), await w.add()];
    await w.run(first, RELEASED);
    expect(await w.claimIds()).toEqual([second, first]);
  });

  test("a retried job comes with the attempts it has spent", async (w) => {
    const id = await w.add();
    await w.run(id, FAILED, [0]);
    expect((await w.hold()).job).toMatchObject({ id, attempts: 1, crashes: 0 });
  });

  test("two workers share a lane without overlap", async (w) => {
    const ids = [await w.add(), await w.add(), await w.add(), await w.add()];
    const ana = await w.claimIds({ worker: ANA, limit: 2 });
    const bob = await w.claimIds({ worker: BOB, limit: 2 });
    expect([...ana, ...bob]).toEqual(ids);
  });

  test("lanes of which one was told to have work, and has none any more, give nothing", async (w) => {
    const lanes = [lane({ task: "x" }), lane({ task: "y" })];
    await w.enqueue({ task: "x" }, { task: "y" });
    expect(await w.claimIds({ lanes })).toHaveLength(2);
    await w.store.jobs.cancel("everyone", await w.add({ task: "y" }), "no need");
    expect(await w.claimIds({ lanes })).toEqual([]);
  });

  test("a lane that has run dry is known by what it gives, however much is left in others", async (w) => {
    const [many, few] = [lane({ task: "x" }), lane({ task: "y" })];
    await w.enqueue(...Array.from({ length: 9 }, () => ({ task: "x" })));
    await w.enqueue({ task: "y" });
    const claim = () => w.store.leases.claim({ worker: ANA, quotas: [many, few].map((of) => ({ lane: of, quota: 2 })), duration: LEASE });
    expect((await claim())?.jobs).toHaveLength(3);
    // Where it was likely to have more first, then where it may have.
    expect((await claim())?.jobs).toHaveLength(2);
    const last = await claim();
    expect(last?.jobs).toHaveLength(2);
    expect(last?.more, "what gave all it was asked for says nothing of the other").toBeUndefined();
    expect((await claim())?.jobs, "and is still there").toHaveLength(2);
  });

  test("a thousand jobs in a hundred lanes come out once each", async (w) => {
    const tenants = Array.from({ length: 100 }, (_, n) => `tenant ${n}`);
    for (let round = 0; round < 10; round++) await w.enqueue(...tenants.map((tenant) => ({ tenant })));
    const lanes = tenants.map((tenant) => lane({ tenant }));
    const seen = new Set<string>();
    for (let ids = await w.claimIds({ lanes, limit: 3 }); ids.length > 0; ids = await w.claimIds({ lanes, limit: 3 })) {
      for (const id of ids) seen.add(id);
    }
    expect(seen.size).toBe(1_000);
  });
}
