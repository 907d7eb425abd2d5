import { afterAll, beforeAll, expect, test } from "vitest";
import { task } from "../../packages/pawl/src/index.js";
import type { Statement } from "../../packages/pawl/src/store/postgres/drivers/driver.js";
import { onceOrAgain } from "../support/again.js";
import { describeOn } from "../support/servers/servers.js";
import { RolesFixture, rewritingStatements, type TenantData } from "./roles-fixture.js";

const OTHERS = 20_000;
/** Rows that a read of one job, or a page of a few, may touch. */
const FEW = 500;

interface RanStatement {
  readonly statement: Statement;
  readonly values: readonly unknown[];
}
interface Node {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows"?: number;
  readonly "Actual Loops"?: number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly Node[];
}

for (const server of onceOrAgain(["embedded18", "debian15"] as const)) {
  describeOn(server, () => {
    let fixture: RolesFixture;
    let own: TenantData;
    beforeAll(async () => {
      fixture = await RolesFixture.open(server);
      ({ acme: own } = await fixture.fill());
      // What others have is much, finished and not, so that a scan of it is seen.
      await fixture.owner.query(
        fixture.sql(`
        with made as (
          insert into pawl.job (created_at, due_at, id, priority, queue, tenant, task, input, home)
          select created_at, due_at, overlay(id::text placing lpad(to_hex(n), 12, '0') from 25)::uuid, priority, queue, 'umbrella', task, input, nextval('pawl.ready_seq')
          from pawl.job, generate_series(1, ${OTHERS}) n where id = '${own.jobs.ready}' returning *
        ),
        waiting as (insert into pawl.ready (id, priority, attempts, crashes, queue, tenant, task) select id, priority, 0, 0, queue, tenant, task from made),
        lined as (
          insert into pawl.parked (id, priority, attempts, crashes, reason, queue, tenant, task, limit_key, rank, seq)
          select id, priority, 0, 0, 'rate', queue, tenant, task, concat_ws(e'\\x01', tenant, 'l', right(id::text, 4)), 4, 1 from made
        ),
        logged as (insert into pawl.log (at, lease, job, level, message) select now(), 1, id, 4, 'm' from made)
        insert into pawl.history (home, last, lease, since, ended, first, outcomes) select home, home, 1, now(), now(), id, '{1,1,2,1,0}' from made`),
      );
      await fixture.owner.query("vacuum analyze");
    });
    afterAll(() => fixture?.[Symbol.asyncDispose]());

    test("what is read as the tenant's role is found by its indexes, however much others have (S18)", async () => {
      const asked = new Map<string, RanStatement>();
      const pawl = await fixture.api((driver) => ({
        ...driver,
        reading: (work) =>
          driver.reading((on) =>
            work({
              query: (statement, values = []) => {
                asked.set(statement.name, { statement, values });
                return on.query(statement, values);
              },
            }),
          ),
      }));
      const acme = pawl.forTenant("acme");
      await acme.jobs.get(own.jobs.succeeded);
      await acme.jobs.history(own.jobs.succeeded);
      await acme.jobs.logs(own.jobs.succeeded);
      await acme.jobs.explain(own.jobs.blocked);
      await acme.jobs.list({ state: "succeeded" });
      await acme.dead.groups();
      await pawl.limits.list({ tenant: "acme" });
      await acme.schedules.list();
      await acme.schedules.ticks("only-a");
      await pawl.close();
      asked.delete(`${fixture.schema}_pawl_enter_tenant_role`);
      expect(asked.size).toBeGreaterThan(9);
      for (const mode of ["force_custom_plan", "force_generic_plan"]) {
        for (const { statement, values } of asked.values()) {
          const { touched, scans, text } = await touchedBy(statement, values, mode);
          expect(touched, `${statement.name}, ${mode}: ${text}`).toBeLessThan(FEW);
          expect(scans, `${statement.name}, ${mode}: ${text}`).toEqual([]);
        }
      }
    });

    async function touchedBy({ name, text }: Statement, values: readonly unknown[], mode: string) {
      const { owner } = fixture;
      await owner.query("begin");
      try {
        await owner.query(`set local plan_cache_mode = ${mode}`);
        await owner.query(`set local role ${fixture.schema}_tenant`);
        await owner.query("select set_config('pawl.tenant', 'acme', true)");
        await owner.query(`prepare looked as ${text}`);
        const literals = values.map((value) => (value === null ? "null" : `'${String(value).replaceAll("'", "''")}'`)).join(", ");
        const { rows } = await owner.query(`explain (analyze, format json) execute looked${literals === "" ? "" : `(${literals})`}`);
        const plan = rows[0]["QUERY PLAN"][0].Plan as Node;
        return { ...sumOf(plan), text: JSON.stringify(plan, ["Node Type", "Relation Name", "Index Name", "Actual Rows", "Actual Loops", "Plans"]) };
      } catch (error) {
        throw new Error(`${name}: ${(error as Error).message}`);
      } finally {
        await owner.query("rollback");
        await owner.query("deallocate all");
      }
    }

    /** Rows of tables that were read, and the large tables that were read from end to end. */
    function sumOf(node: Node): { touched: number; scans: string[] } {
      const relation = node["Relation Name"];
      const loops = node["Actual Loops"] ?? 0;
      const rows = ((node["Actual Rows"] ?? 0) + (node["Rows Removed by Filter"] ?? 0)) * loops;
      const inner = (node.Plans ?? []).map(sumOf);
      const scan = relation !== undefined && node["Node Type"] === "Seq Scan" && /^(job|attempt|log|ready|parked)/.test(relation) && rows > FEW;
      return {
        touched: (relation === undefined ? 0 : rows) + inner.reduce((sum, { touched }) => sum + touched, 0),
        scans: [...(scan ? [relation] : []), ...inner.flatMap(({ scans }) => scans)],
      };
    }
  });
}

describeOn("embedded18", () => {
  test("hot statements have the plans under the engine's policies that they have under none (S18)", async () => {
    await using fixture = await RolesFixture.open("embedded18");
    const hot = new Map<string, Statement>();
    const done = task("done", async (input: number) => input);
    const watched = rewritingStatements((asked) => {
      if (asked.hot !== undefined) hot.set(asked.name, asked);
      return asked;
    });
    const pawl = await fixture.api(watched, { tasks: [done] });
    await pawl.work({ concurrency: 8 });
    const many = await pawl.enqueueMany(
      done,
      Array.from({ length: 300 }, (_, n) => n),
    );
    for (const job of [await pawl.enqueue(done, 1), await pawl.enqueue(done, 1, { unique: "k" })]) await job.result("60s");
    await many.at(-1)?.result("60s");
    await pawl.close();
    expect(new Set([...hot.values()].map((one) => one.hot))).toEqual(new Set(["enqueue", "claim", "settle"]));
    const plansAs = async (role: string | undefined) => {
      const plans: Record<string, unknown> = {};
      for (const { name, text } of hot.values()) {
        await fixture.owner.query("begin");
        await fixture.owner.query("set local enable_seqscan = off");
        if (role !== undefined) await fixture.owner.query(`set local role ${role}`);
        const { rows } = await fixture.owner.query(`explain (generic_plan, costs off) ${text}`);
        await fixture.owner.query("rollback");
        plans[name] = rows.map((row) => row["QUERY PLAN"]);
      }
      return plans;
    };
    expect(await plansAs(`${fixture.schema}_engine`)).toEqual(await plansAs(undefined));
  });
});
