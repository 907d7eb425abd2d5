import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { open, task } from "../../packages/pawl/src/index.js";
import { nativePostgres } from "../../packages/pawl/src/store/postgres/embedded/index.js";
import { eventually } from "../support/eventually.js";
import { type PrivateServer, startPrivateServer } from "../support/servers/private-server.js";

const native = nativePostgres();
const quick = task("quick", () => "done");
const WAIT = "30s";
const IN_WAIT = "select pid from pg_stat_activity where datname = current_database() and wait_event = 'SyncRep'";

describe.skipIf(!native.ok)(`a synchronous standby that is gone${native.ok ? "" : ` (${native.reason})`}`, () => {
  let server: PrivateServer;
  let database: Awaited<ReturnType<PrivateServer["database"]>>;
  let control: pg.Client;
  let writer: pg.Client;
  beforeAll(async () => {
    server = await startPrivateServer();
    database = await server.database();
    control = new pg.Client(database.url);
    await control.connect();
    // What is asked here waits for nobody.
    await control.query("set synchronous_commit = local");
    await control.query("create table written (n int)");
    writer = new pg.Client(database.url);
    await writer.connect();
  });
  afterAll(async () => {
    await standby("");
    await writer.end();
    await control.end();
    await database[Symbol.asyncDispose]();
    await server.close();
  });

  /** Whose receipt every commit waits for; nobody has that name. */
  async function standby(name: string): Promise<void> {
    await control.query(`alter system set synchronous_standby_names = '${name}'`);
    await control.query("select pg_reload_conf()");
    await eventually(
      "the setting counts",
      async () => (await control.query("show synchronous_standby_names")).rows[0]?.synchronous_standby_names === name,
    );
    // The server's own process that lets commits wait reads it when it comes to it.
    if (name !== "") await eventually("commits wait", commitWaits);
  }

  async function commitWaits(): Promise<boolean> {
    const commit = writer.query("insert into written values (1)").then(() => "done" as const);
    while ((await Promise.race([commit, setTimeout(10)])) !== "done") {
      if ((await cancelWaiting()) === 0) continue;
      await commit;
      return true;
    }
    return false;
  }

  async function cancelWaiting(): Promise<number> {
    const { rows } = await control.query<{ pid: number }>(IN_WAIT);
    for (const { pid } of rows) await control.query("select pg_cancel_backend($1)", [pid]);
    return rows.length;
  }

  it("every commit hangs: callers are told within the statement's time-out, reads go on, and so does all when it is back (C13)", async () => {
    await using pawl = await open(database.url, { tasks: [quick], maintenance: false, postgres: { statementTimeout: 1_500, connections: 3 } });
    const before = await pawl.enqueue(quick, undefined);
    await standby("gone");
    const began = performance.now();
    const calls = Array.from({ length: 12 }, (_, n) => pawl.enqueue(quick, undefined, { idempotencyKey: `r-${n}` }));
    const answers = await Promise.allSettled(calls);
    for (const answer of answers)
      expect(answer).toMatchObject({ status: "rejected", reason: { code: expect.stringMatching(/^(enqueue_uncertain|store_unreachable)$/) } });
    expect(performance.now() - began, "not one time-out after the other").toBeLessThan(12 * 1_500);
    expect(await before.get(), "a read does not wait, and finds a connection").toMatchObject({ state: "ready" });

    await standby("");
    const jobs = await eventually("enqueueing works", () =>
      Promise.all(calls.map((_, n) => pawl.enqueue(quick, undefined, { idempotencyKey: `r-${n}` }))).catch(() => undefined),
    );
    await pawl.work();
    for (const job of [before, ...jobs]) expect(await job.result(WAIT)).toBe("done");
    const [{ n }] = (await control.query("select count(*)::int as n from pawl.any_job where task = 'quick'")).rows;
    expect(n, "one of each, stored at first or when asked again").toBe(13);
  });

  it("a commit whose wait for it was cancelled is not acknowledged, alone or in a transaction, and asking again makes no second job (C16)", async () => {
    await using pawl = await open(database.url, { tasks: [quick], maintenance: false });
    const cancelled = async (call: Promise<unknown>) => {
      const answer = call.then(
        () => "acknowledged",
        (error: { code: string }) => error.code,
      );
      await eventually("its commit waits, and is cancelled", async () => (await cancelWaiting()) > 0);
      return answer;
    };
    await standby("gone");
    expect(await cancelled(pawl.enqueue(quick, undefined)), "a statement of its own").toBe("enqueue_uncertain");
    expect(await cancelled(pawl.enqueue(quick, undefined, { idempotencyKey: "once" })), "a transaction").toBe("enqueue_uncertain");
    await standby("");
    const again = await pawl.enqueue(quick, undefined, { idempotencyKey: "once" });
    expect(again.enqueued).toBe("existing");
  });
});
