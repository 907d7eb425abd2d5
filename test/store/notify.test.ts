import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect, test } from "vitest";
import { joined } from "../../packages/pawl/conformance/transactions.js";
import { idSuffixSource } from "../../packages/pawl/src/core/jobs/id.js";
import type { NewJob } from "../../packages/pawl/src/core/jobs/job.js";
import type { Transaction } from "../../packages/pawl/src/core/jobs/transaction.js";
import type { Wakeup } from "../../packages/pawl/src/store/port/index.js";
import { DriverError } from "../../packages/pawl/src/store/postgres/connection/errors.js";
import type { Driver } from "../../packages/pawl/src/store/postgres/drivers/driver.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { finish } from "../../packages/pawl/src/store/postgres/open.js";
import { eventually } from "../support/eventually.js";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";

const idSuffix = idSuffixSource((size) => randomBytes(size));
const job = (more: Partial<NewJob> = {}): NewJob => ({
  idSuffix: idSuffix("acme"),
  lane: { queue: "default", priority: 5, tenant: "acme", task: "notify" },
  input: "1",
  options: undefined,
  ...more,
});

/** Tells which statements are sent inside transactions. */
function watched(inner: Driver, inside: string[]): Driver {
  return {
    ...inner,
    transaction: (work) =>
      inner.transaction((tx) =>
        work({
          query: (statement, values) => {
            inside.push(statement.text);
            return tx.query(statement, values);
          },
          run: (text, values) => {
            inside.push(text);
            return tx.run(text, values);
          },
        }),
      ),
  };
}

describeOn("embedded18", () => {
  test("E4: enqueues send at most one NOTIFY in 5 ms, however many they are, and never in a transaction, nor in the caller's", async () => {
    await using database = await migratedDatabase();
    const inside: string[] = [];
    const driver = watched(pgDriver({ config: database.config, prepare: "auto", statementTimeout: 30_000 }), inside);
    const store = await finish(driver, { engine: "postgres", place: "test", durability: "process" }, {});
    const listener = new pg.Client(database.config);
    await listener.connect();
    const heard: string[] = [];
    listener.on("notification", ({ payload }) => heard.push(payload ?? ""));
    await listener.query('listen "pawl.work"');
    try {
      const began = performance.now();
      for (let round = 0; round < 100; round++) {
        await Promise.all([
          store.jobs.enqueue([job()]),
          store.jobs.enqueue([job()]),
          store.jobs.enqueue([job({ idempotencyKey: { id: `r-${round}`, digest: "d" } })]),
        ]);
      }
      const took = performance.now() - began;
      await eventually("they are heard", () => heard.some((payload) => payload.includes("notify")));
      await listener.query("select 1");
      expect(heard.filter((payload) => payload.includes('"ready"')).length, `in ${Math.round(took)} ms`).toBeLessThanOrEqual(took / 4 + 2);
      expect(inside.length, "there were transactions").toBeGreaterThan(100);
      expect(inside.filter((text) => /notify/i.test(text.replaceAll("pawl_notify", "notify")))).toEqual([]);

      const callers: string[] = [];
      await listener.query("begin");
      const caller: Transaction = {
        query: (text, values) => {
          callers.push(text);
          return listener.query(text, values as unknown[]);
        },
      };
      await store.jobs.enqueue([job(), job({ idempotencyKey: { id: "own", digest: "d" } })], joined(store, caller));
      await listener.query("commit");
      expect(callers.length).toBeGreaterThan(0);
      expect(callers.filter((text) => /notify/i.test(text))).toEqual([]);
    } finally {
      await listener.end();
      await store.close();
    }
  });

  test("a process that looks for no work is not woken by jobs of others, and is from the moment it does", async () => {
    await using database = await migratedDatabase();
    const open = () =>
      finish(
        pgDriver({ config: database.config, prepare: "auto", statementTimeout: 30_000 }),
        { engine: "postgres", place: "test", durability: "process" },
        {},
      );
    const [producer, other] = [await open(), await open()];
    const heard: string[] = [];
    other.onWakeup(({ kind }) => heard.push(kind));
    const tell = async () => {
      heard.length = 0;
      await producer.jobs.enqueue([job()]);
    };
    try {
      await eventually("both hear", () => producer.receivesWakeups() && other.receivesWakeups());
      await tell();
      producer.sendWakeup({ kind: "intent" }); // later, by the channel that everybody hears
      await eventually("the other hears that", () => heard.includes("intent"));
      expect(heard).not.toContain("ready");

      heard.length = 0;
      await other.lanes.live(undefined, ["notify"]);
      await eventually("it looks once it hears of work, since it may have missed some", () => heard.includes("lanes"));
      await tell();
      await eventually("it is told of the job", () => heard.includes("ready"));
    } finally {
      await producer.close();
      await other.close();
    }
  });

  test("jobs of a thousand lanes wake others by name, in as many messages as it takes and one statement; those of more say: look", async () => {
    await using database = await migratedDatabase();
    const sent: string[] = [];
    const inner = pgDriver({ config: database.config, prepare: "auto", statementTimeout: 30_000 });
    const noting: Driver = {
      ...inner,
      query: (statement, values) => {
        if (values?.[0] === "pawl.work") sent.push(statement.name);
        return inner.query(statement, values);
      },
    };
    const engine = { engine: "postgres", place: "test", durability: "process" } as const;
    const [producer, worker] = [
      await finish(noting, engine, {}),
      await finish(pgDriver({ config: database.config, prepare: "auto", statementTimeout: 30_000 }), engine, {}),
    ];
    const lanes = (count: number) => Array.from({ length: count }, (_, n) => ({ ...job().lane, tenant: `tenant "${n}" ü\\` }));
    const heard: Wakeup[] = [];
    try {
      await eventually("both hear", () => producer.receivesWakeups() && worker.receivesWakeups());
      worker.onWakeup((wakeup) => heard.push(wakeup));
      await worker.lanes.live(undefined, ["notify"]);
      await eventually("it listens for work", () => heard.some(({ kind }) => kind === "lanes"));
      sent.length = heard.length = 0;
      producer.sendWakeup({ kind: "ready", lanes: lanes(1_000) });
      const told = () => heard.flatMap((wakeup) => (wakeup.kind === "ready" ? wakeup.lanes : []));
      await eventually("all are heard of", () => told().length === 1_000);
      expect(new Set(told().map(({ tenant }) => tenant))).toEqual(new Set(lanes(1_000).map(({ tenant }) => tenant)));
      expect(heard.length).toBeGreaterThan(1);
      expect(sent).toEqual(["pawl_notify_all"]);

      heard.length = 0;
      producer.sendWakeup({ kind: "ready", lanes: lanes(1_001) });
      await eventually("it is told to look", () => heard.length > 0);
      expect(heard).toEqual([{ kind: "lanes" }]);
    } finally {
      await producer.close();
      await worker.close();
    }
  });

  test("a wakeup that the server will not take is no reason not to store the job", async () => {
    await using database = await migratedDatabase();
    const inner = pgDriver({ config: database.config, prepare: "auto", statementTimeout: 30_000 });
    let refused = 0;
    const full: Driver = {
      ...inner,
      query: (asked, values = []) => {
        if (!asked.text.includes("pg_notify") || values.at(-1) === null) return inner.query(asked, values);
        refused++;
        return Promise.reject(new DriverError("refused", "54000", new Error("too many notifications in the NOTIFY queue")));
      },
    };
    const store = await finish(full, { engine: "postgres", place: "test", durability: "process" }, {});
    try {
      const [answer] = await store.jobs.enqueue([job()]);
      expect(answer).toMatchObject({ kind: "created" });
      expect(refused).toBeGreaterThan(0);
    } finally {
      await store.close();
    }
  });
});
