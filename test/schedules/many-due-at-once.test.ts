import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { idSuffixSource } from "../../packages/pawl/src/core/jobs/id.js";
import { open, schedule, task } from "../../packages/pawl/src/index.js";
import { systemRandomBytes } from "../../packages/pawl/src/runtime/process/random.js";
import type { Driver, DriverRow, Statement } from "../../packages/pawl/src/store/postgres/drivers/driver.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { finish } from "../../packages/pawl/src/store/postgres/open.js";
import { eventually } from "../support/eventually.js";
import { type Database, describeOn, migratedDatabase } from "../support/servers/servers.js";

const nightly = task("nightly", () => undefined);
const ZONES = Intl.supportedValuesOf("timeZone");

describeOn("embedded18", () => {
  let database: Database;
  let client: pg.Client;
  beforeAll(async () => {
    database = await migratedDatabase();
    client = new pg.Client(database.config);
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });
  const one = async (text: string) => Object.values((await client.query<Record<string, number>>(text)).rows[0] ?? {})[0] as number;

  describe("thousands of schedules due at one instant", () => {
    it("have one job each, in steps of a bounded size, shared by those who are there", async () => {
      const count = 3_000;
      const schedules = Array.from({ length: count }, (_, n) =>
        schedule("nightly", nightly, { overlap: "allow", cron: "0 0 * * *", timeZone: ZONES[n % ZONES.length] as string, tenant: `tenant ${n}` }),
      );
      const first = await open(database.url, { tasks: [nightly], schedules, maintenance: false });
      await client.query("update pawl.schedule set due_at = now(), next = now() - interval '1 second'");
      const steps: number[] = [];
      const holders = await Promise.all([1, 2].map(() => open(database.url, { tasks: [nightly], maintenance: { pollInterval: "200ms" } })));
      for (const holder of holders) holder.on("schedules.ticked", ({ schedules: seen }) => steps.push(seen));
      await eventually("all have ticked", async () => (await one("select count(*)::int from pawl.tick")) >= count, 60_000);
      for (const holder of holders) await holder.close();
      expect(await one("select count(distinct schedule)::int from pawl.tick")).toBe(count);
      expect(await one("select count(*)::int from pawl.any_job")).toBe(count);
      expect(Math.max(...steps)).toBeLessThanOrEqual(500);
      expect((await first.counts()).ready).toBe(count);
      await first.close();
    }, 120_000);
  });

  describe("a schedule that cannot be planned", () => {
    it("is tried again later, and holds up no other", async () => {
      const store = await finish(noting(new Map()), { engine: "postgres", place: "test", durability: "process" }, { migrate: false });
      await client.query("update pawl.schedule set due_at = now() + interval '1 day'");
      await client.query("delete from pawl.tick");
      // As if its zone had left the tz database.
      await client.query(`
        update pawl.schedule set due_at = now() - interval '1 second', next = now() - interval '1 second',
          definition = case when tenant = 'tenant 0' then regexp_replace(definition::text, '"zone":"[^"]*"', '"zone":"Mars/Olympus"')::json else definition end
        where tenant in ('tenant 0', 'tenant 1')`);
      expect(await dutiesOf(store).tick(10, idSuffixSource(systemRandomBytes))).toMatchObject({
        schedules: 2,
        failures: [{ code: "time_zone_unknown" }],
      });
      expect(await one("select count(*)::int from pawl.tick t join pawl.schedule s on s.id = t.schedule where s.tenant = 'tenant 1'")).toBe(1);
      const wait = await one("select extract(epoch from due_at - now())::float8 from pawl.schedule where tenant = 'tenant 0'");
      expect(wait).toBeGreaterThan(30);
      expect(wait).toBeLessThan(61);
      await store.close();
    }, 60_000);
  });

  describe("what it takes to find those that are due", () => {
    it("does not grow with those that are not", async () => {
      const asked = new Map<string, { readonly text: string; readonly values: readonly unknown[] }>();
      const store = await finish(noting(asked), { engine: "postgres", place: "test", durability: "process" }, { migrate: false });
      await store.duties.poll();
      await dutiesOf(store).tick(500, () => {
        throw new Error("nothing is due");
      });
      const buffers = async () => {
        await client.query("vacuum analyze pawl.schedule");
        const read = async (name: string) => {
          const { text, values } = asked.get(name) as { text: string; values: unknown[] };
          const { rows } = await client.query<{ "QUERY PLAN": readonly [{ Plan: { "Shared Hit Blocks": number; "Shared Read Blocks": number } }] }>(
            `explain (analyze, buffers, format json) ${text}`,
            values,
          );
          const { Plan } = (rows[0] as (typeof rows)[number])["QUERY PLAN"][0];
          return Plan["Shared Hit Blocks"] + Plan["Shared Read Blocks"];
        };
        return (await read("pawl_due_schedules")) + (await read("pawl_next_tick")) + (await read("pawl_poll"));
      };
      await client.query("update pawl.schedule set due_at = now() + interval '1 day'");
      const few = await buffers();
      await client.query(`insert into pawl.schedule (next, due_at, created_at, changed_at, revision, keeps, tenant, name, definition)
        select now() + interval '1 day', now() + interval '1 day', now(), now(), 1, false, 'many', n::text, (select definition from pawl.schedule limit 1)
        from generate_series(1, 30000) n`);
      expect(await buffers()).toBeLessThan(few + 20);
      await store.close();
    }, 120_000);
  });

  describe("what a step costs", () => {
    it("does not grow with the ticks of the past", async () => {
      const asked = new Map<string, { readonly text: string; readonly values: readonly unknown[] }>();
      const store = await finish(noting(asked), { engine: "postgres", place: "test", durability: "process" }, { migrate: false });
      const due = "update pawl.schedule set due_at = now(), next = now() - interval '1 second', open = '{}' where tenant in ('tenant 2', 'tenant 3')";
      await client.query(due);
      const step = () => dutiesOf(store).tick(10, idSuffixSource(systemRandomBytes));
      expect(await step()).toMatchObject({ schedules: 2, jobs: 2 });
      expect([...asked.keys()], "nobody asks whether a tick was backfilled").not.toContain("pawl_backfilled_ticks");

      await client.query(`insert into pawl.tick (schedule, at, fired_at, way, merged, job)
        select s.id, now() - n * interval '1 day', now(), 'fired', 0, gen_random_uuid() from pawl.schedule s cross join generate_series(1, 3) n where tenant = 'many'`);
      await client.query("vacuum analyze pawl.tick");
      await client.query(due);
      // One that has its job already: the index says so, and then they are looked up.
      await client.query(`insert into pawl.tick (schedule, at, fired_at, way, merged, job)
        select id, next, now(), 'backfilled', 0, gen_random_uuid() from pawl.schedule where tenant = 'tenant 2'`);
      expect(await step()).toMatchObject({ schedules: 2, jobs: 1 });
      const { text, values } = asked.get("pawl_backfilled_ticks") as { text: string; values: unknown[] };
      await client.query("set plan_cache_mode = force_generic_plan");
      await client.query(`prepare looking as ${text}`);
      const literals = values.map((value) => `'${value}'`).join(", ");
      const { rows } = await client.query<{ "QUERY PLAN": string }>(`explain (analyze, buffers) execute looking(${literals})`);
      const read = Number(/shared hit=(\d+)/.exec(rows.map((row) => row["QUERY PLAN"]).join("\n"))?.[1]);
      expect(read, rows.map((row) => row["QUERY PLAN"]).join("\n")).toBeLessThan(50);
      await store.close();
    }, 120_000);
  });

  /** A driver that remembers what it was asked, by name. */
  function noting(asked: Map<string, { text: string; values: readonly unknown[] }>): Driver {
    const inner = pgDriver({ config: { ...database.config, max: 2 }, prepare: "auto", statementTimeout: 30_000 });
    const note = (statement: Statement, values: readonly unknown[] = []) => void asked.set(statement.name, { text: statement.text, values });
    return {
      ...inner,
      query<R extends DriverRow>(statement: Statement, values?: readonly unknown[]) {
        note(statement, values);
        return inner.query<R>(statement, values);
      },
      transaction: (work) =>
        inner.transaction((tx) =>
          work({
            query<R extends DriverRow>(statement: Statement, values?: readonly unknown[]) {
              note(statement, values);
              return tx.query<R>(statement, values);
            },
            run: (text, values) => tx.run(text, values),
          }),
        ),
    };
  }
});
