import { randomUUID } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { joined } from "../../packages/pawl/conformance/transactions.js";
import type { InstanceId } from "../../packages/pawl/src/core/jobs/id.js";
import type { Store } from "../../packages/pawl/src/store/port/index.js";
import { nativePostgres } from "../../packages/pawl/src/store/postgres/embedded/index.js";
import { openPostgres } from "../../packages/pawl/src/store/postgres/open.js";
import { eventually } from "../support/eventually.js";
import { LANE, LEASE_MS, newJob } from "../support/fixtures/handoff-fixture.js";
import { type PrivateServer, startPrivateServer } from "../support/servers/private-server.js";

const native = nativePostgres();
const TASKS = ["call", "another"];

/**
 * On a server where nothing else goes on: what a look may take for settled is known by the ids of transactions, and the last one
 * is the caller's own.
 */
describe.skipIf(!native.ok)(`a transaction of the caller's on a quiet server${native.ok ? "" : ` (${native.reason})`}`, () => {
  const worker = { name: "ana", instance: randomUUID() as InstanceId };
  let server: PrivateServer;
  beforeAll(async () => {
    server = await startPrivateServer();
  });
  afterAll(() => server?.close());

  /** A store whose lane `call` is known and empty, and a client with a transaction that will end when the test says so. */
  async function open() {
    const database = await server.database();
    const store = await openPostgres({ url: database.url });
    await store.jobs.enqueue([newJob()]);
    await look(store);
    await claim(store, "call");
    await look(store);
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query("begin");
    return {
      store,
      client,
      async [Symbol.asyncDispose]() {
        await client.end();
        await store.close();
        await database[Symbol.asyncDispose]();
      },
    };
  }

  async function look({ lanes }: Store): Promise<readonly string[]> {
    return (await lanes.live(undefined, TASKS)).lanes.map(({ task }) => task);
  }

  async function claim({ leases }: Store, task: string): Promise<number> {
    const quotas = [{ lane: { ...LANE, task }, quota: 5 }];
    return (await leases.claim({ worker, quotas, duration: LEASE_MS }))?.jobs.length ?? 0;
  }

  it.each<[string, string, number]>([
    ["in a lane that is known", "call", 2],
    ["in a lane that is new", "another", 1],
  ])("that is open during many looks: its jobs are found when it ends, %s", async (_, task, count) => {
    await using fixture = await open();
    const { store, client } = fixture;
    for (let n = 0; n < count; n++) await store.jobs.enqueue([newJob({ lane: { task } })], joined(store, client));
    for (let n = 0; n < 4; n++) expect(await look(store)).toEqual([]);
    await client.query("commit");
    expect(await look(store)).toEqual([task]);
    expect(await claim(store, task)).toBe(count);
  });

  it("that is open during many polls: its delayed job is promoted when it ends", async () => {
    await using fixture = await open();
    const { store, client } = fixture;
    await store.jobs.enqueue([{ ...newJob(), delay: 100 }], joined(store, client));
    // As far behind as a clock may be, and more: only then is what was due before taken for gone.
    const late = performance.now() + 7_000;
    await eventually("polls have seen nothing for long", async () => {
      expect((await store.duties.poll()).due.get("promote")).toBeUndefined();
      return performance.now() >= late;
    });
    await client.query("commit");
    expect((await store.duties.poll()).due.get("promote")).toBeLessThan(0);
    expect((await dutiesOf(store).promote(10)).count).toBe(1);
  });
});
