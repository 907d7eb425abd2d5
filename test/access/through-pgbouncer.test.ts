import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isPawlError, type Pawl } from "../../packages/pawl/src/index.js";
import { startPgBouncer } from "../support/servers/pgbouncer.js";
import { describeOn, serverFor } from "../support/servers/servers.js";
import { RolesFixture, TENANTS, type Tenant, withoutTenantConditions } from "./roles-fixture.js";

const QUERIES = 20_000;
const AT_ONCE = 8;

describeOn("pgbouncer", () => {
  test(`${QUERIES} reads of two tenants in turns, on one pooled connection and without their conditions, see none of the other's rows (S18)`, {
    timeout: 600_000,
  }, async () => {
    await using fixture = await RolesFixture.open("pgbouncer");
    const own = await fixture.fill();
    const probe = serverFor("pgbouncer");
    if (!probe.available) throw new Error(probe.reason);
    const folder = mkdtempSync("/tmp/pawl-pool-");
    chmodSync(folder, 0o711); // as root the pooler is another user
    const { direct, version } = probe.server;
    const pooler = await startPgBouncer(join(folder, "one"), { ...direct, version, direct }, { pool: 1, user: fixture.login });
    if (typeof pooler === "string") throw new Error(pooler);
    const api = await fixture.api(withoutTenantConditions({ tenantRole: true }), { address: pooler.server });
    try {
      const scoped = Object.fromEntries(TENANTS.map((tenant) => [tenant, api.forTenant(tenant)])) as Readonly<
        Record<Tenant, ReturnType<Pawl["forTenant"]>>
      >;
      let leaks = 0;
      let seen = 0;
      const read = async (n: number) => {
        const [tenant, other] = n % 2 === 0 ? TENANTS : ([TENANTS[1], TENANTS[0]] as const);
        const { jobs } = scoped[tenant];
        const kind = n % 10;
        // Awaited first: `+=` would add to what it was before, and lose what others have counted meanwhile.
        if (kind < 4) {
          const { input } = await jobs.get(own[tenant].jobs.ready);
          if (input === `secret of ${tenant}`) seen++;
        } else if (kind < 8) {
          if (await found(jobs.get(own[other].jobs.ready))) leaks++;
        } else {
          const page = await jobs.list({ state: "dead" });
          seen += page.items.filter(({ input }) => input === `secret of ${tenant}`).length;
          leaks += page.items.filter(({ input }) => input !== `secret of ${tenant}`).length;
        }
      };
      let next = 0;
      const one = async () => {
        while (next < QUERIES) await read(next++);
      };
      await Promise.all(Array.from({ length: AT_ONCE }, one));
      expect({ leaks, seen }).toEqual({ leaks: 0, seen: 0.6 * QUERIES });
    } finally {
      await api.close();
      await pooler.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

async function found(read: Promise<unknown>): Promise<boolean> {
  try {
    await read;
    return true;
  } catch (error) {
    if (isPawlError(error, "job_unknown")) return false;
    throw error;
  }
}
