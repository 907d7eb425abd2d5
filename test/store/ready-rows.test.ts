import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { idSuffixSource } from "../../packages/pawl/src/core/jobs/id.js";
import type { Lane } from "../../packages/pawl/src/core/jobs/lane.js";
import type { Store } from "../../packages/pawl/src/store/port/index.js";
import { laneColumns } from "../../packages/pawl/src/store/postgres/connection/lane-numbers.js";
import { ADMITTED_SECTION_START } from "../../packages/pawl/src/store/postgres/connection/sql-constants.js";
import { sqlFile } from "../../packages/pawl/src/store/postgres/connection/sql-statement.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import { JOBS_PER_ROW } from "../../packages/pawl/src/store/postgres/enqueue/ready-rows.js";
import { finish } from "../../packages/pawl/src/store/postgres/open.js";
import { type Database, describeOn, migratedDatabase } from "../support/servers/servers.js";

const CLAIM = sqlFile("claim/claim.sql");
const idSuffix = idSuffixSource((size) => randomBytes(size));
/** How the connections of claims are set (drivers/pg.ts). */
const PLANNED = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c jit=off";
const UNLOCKED = "select count(*)::int as rows from (select from pawl.ready where tenant = any($1) for update skip locked) r";

/** A claim locks what it takes and nothing else. That is how Postgres pulls rows through a LIMIT, and no promise of it: so it is looked at here. */
for (const server of ["embedded18", "debian15"] as const) {
  describeOn(server, () => {
    let database: Database;
    let store: Store;
    let claimer: pg.Client;
    let other: pg.Client;

    beforeAll(async () => {
      database = await migratedDatabase(server);
      const driver = pgDriver({ config: { ...database.config, max: 1 }, prepare: "auto", statementTimeout: 60_000 });
      store = await finish(driver, { engine: "postgres", place: "test", durability: "process" }, {});
      [claimer, other] = [new pg.Client({ ...database.config, options: PLANNED }), new pg.Client(database.config)];
      await Promise.all([claimer.connect(), other.connect()]);
    });
    afterAll(async () => {
      await Promise.all([claimer.end(), other.end()]);
      await store.close();
      await database.drop();
    });

    const lane = (tenant: string): Lane => ({ queue: "default", priority: 5, tenant, task: "work" });
    const enqueue = (tenant: string, count: number) =>
      store.jobs.enqueue(Array.from({ length: count }, () => ({ idSuffix: idSuffix(tenant), lane: lane(tenant), input: "1", options: undefined })));
    const rowsOf = async (tenants: readonly string[]) => (await other.query<{ rows: number }>(UNLOCKED, [tenants])).rows[0]?.rows ?? 0;

    /** How many rows a claim of so many jobs of each lane locks, and how many jobs it takes. */
    async function locked(tenants: readonly string[], quota: number, admittedSection: number | null = null): Promise<{ rows: number; jobs: number }> {
      const before = await rowsOf(tenants);
      await claimer.query("begin");
      const of = <T>(value: T) => tenants.map(() => value);
      const values = CLAIM.values({
        now: null,
        worker: 1,
        duration: 60_000,
        limitsChecked: false,
        offer: { ...laneColumns(tenants.map(lane)), admittedSection: of(admittedSection), bound: of(0), quota: of(quota) },
      });
      const { rows } = await claimer.query<{ jobs: string }>({ name: "claim", text: CLAIM.statement.text, values: [...values] });
      const after = await rowsOf(tenants);
      await claimer.query("rollback");
      return { rows: before - after, jobs: rows[0]?.jobs.split(",").length ?? 0 };
    }

    describe.each([
      ["before the table is analyzed", ""],
      ["and after it was", "analyze pawl.ready"],
    ])("%s, a claim locks", (_, script) => {
      beforeAll(async () => {
        await claimer.query("discard plans");
        if (script !== "") await other.query(script);
      });

      test("as many rows of one job as it takes", async () => {
        const tenant = `single ${script}`;
        for (let n = 0; n < 100; n++) await enqueue(tenant, 1);
        expect(await locked([tenant], 1)).toEqual({ rows: 1, jobs: 1 });
        expect(await locked([tenant], 10)).toEqual({ rows: 10, jobs: 10 });
        expect(await locked([tenant], 200)).toEqual({ rows: 100, jobs: 100 });
      });

      test("as many rows of several jobs as hold what it takes", async () => {
        const tenant = `many ${script}`;
        await enqueue(tenant, 10 * JOBS_PER_ROW);
        expect(await locked([tenant], 1)).toEqual({ rows: 1, jobs: 1 });
        expect(await locked([tenant], 10)).toEqual({ rows: 1, jobs: 10 });
        expect(await locked([tenant], JOBS_PER_ROW)).toEqual({ rows: 1, jobs: JOBS_PER_ROW });
        expect(await locked([tenant], JOBS_PER_ROW + 1)).toEqual({ rows: 2, jobs: JOBS_PER_ROW + 1 });
      });

      test("as many of each lane, its admitted section included", async () => {
        const tenants = [1, 2, 3].map((n) => `lane ${n} ${script}`);
        for (const tenant of tenants) await enqueue(tenant, 2 * JOBS_PER_ROW);
        await other.query(
          "insert into pawl.ready (seq, priority, queue, tenant, task, id) select $1::bigint + n, 5, 'default', $2, 'work', gen_random_uuid() from generate_series(1, 5) n",
          [ADMITTED_SECTION_START, tenants[1]],
        );
        expect(await locked(tenants, 3, ADMITTED_SECTION_START)).toEqual({ rows: 1 + 3 + 1, jobs: 9 });
        expect(await locked(tenants, 6, ADMITTED_SECTION_START)).toEqual({ rows: 1 + 6 + 1, jobs: 18 });
        expect(await locked(tenants, 6)).toEqual({ rows: 3, jobs: 18 });
      });
    });
  });
}
