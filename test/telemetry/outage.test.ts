import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { open } from "pawl";
import { serviceOf } from "pawl/service";
import { describe, expect, test } from "vitest";
import { alerts, alertsYaml } from "../../packages/server/src/telemetry/metrics/alerts.js";
import { serve } from "../service/service.js";
import { eventually, throughout } from "../support/eventually.js";
import { Prometheus, whyNoPrometheus } from "../support/prometheus.js";
import { DebianCluster } from "../support/servers/debian-cluster.js";
import { debianMissing } from "../support/servers/debian-postgres.js";
import { TcpProxy } from "../support/servers/tcp-proxy.js";
import { temporaryFolder } from "../support/temporary-folder.js";

const PEPPER = "a pepper of more than sixteen bytes";
/** ms that Postgres is stopped */
const OUTAGE = 90_000;
/** Those that everybody is given, with their own times. */
const RULES = readFileSync(new URL("../../ops/alerts.yml", import.meta.url), "utf8");
/** The same, with a minute in two seconds. */
const QUICK_RULES = alertsYaml(alerts(1 / 30));

const reason = whyNoPrometheus() ?? debianMissing();

describe.skipIf(reason !== undefined)(reason === undefined ? "on a real Prometheus" : `on a real Prometheus (${reason})`, () => {
  test("a Postgres that is stopped for 90 s raises PawlStoreAway, with keys on, and metrics never stop", { timeout: 400_000 }, async () => {
    using folder = temporaryFolder();
    mkdirSync(folder.path, { recursive: true });
    const pepper = join(folder.path, "pepper");
    writeFileSync(pepper, PEPPER);
    await using cluster = new DebianCluster();
    const before = await cluster.start();
    cluster.run("createdb", before, ["app"]);
    const wire = await TcpProxy.before(before.address);
    try {
      await using service = serve(wire.url("app"), ["--auth", "keys", "--api-keys-pepper", `file:${pepper}`]);
      const target = new URL(await service.up()).host;
      const key = await (async () => {
        await using pawl = await open(cluster.url(before, "app"), { apiKeys: { pepper: PEPPER }, maintenance: false });
        return (await serviceOf(pawl).apiKeys.create({ name: "prometheus", grants: [{ role: "viewer" }] })).secret;
      })();
      await using prometheus = await Prometheus.start([{ job: "pawl", target, path: "/metrics", key }], RULES, "5s");
      const one = async (expr: string) => (await prometheus.query(expr))[0]?.value[1];
      const firing = async () => (await prometheus.query('ALERTS{alertstate="firing"}')).map(({ metric }) => metric.alertname);
      await eventually("Prometheus sees the store", async () => (await one("pawl_store_up")) === "1");

      await before.stop();
      await wire.refuse();
      const stopped = performance.now();
      await eventually("Prometheus sees that it is away", async () => (await one("pawl_store_up")) === "0");
      const raisedAt = eventually("the alert", async () => (await firing()).includes("PawlStoreAway") && performance.now(), 2 * OUTAGE);
      await throughout(OUTAGE - (performance.now() - stopped), async () => {
        expect([await one("up"), await one("pawl_store_up")]).toEqual(["1", "0"]);
      });
      expect((await raisedAt) - stopped, "ms until somebody was paged").toBeLessThan(2 * OUTAGE);

      wire.forwardTo((await cluster.start({}, join(before.address.host, "data"))).address);
      await wire.accept();
      await eventually("Prometheus sees the store again", async () => (await one("pawl_store_up")) === "1");
      await eventually("the alert is over", async () => !(await firing()).includes("PawlStoreAway"));
      expect(await one("min_over_time(up[10m])"), "every scrape was answered").toBe("1");
    } finally {
      await wire.close();
    }
  });

  test("a Prometheus that is not let in from its first scrape on says that it sees nothing", { timeout: 180_000 }, async () => {
    using folder = temporaryFolder();
    mkdirSync(folder.path, { recursive: true });
    const pepper = join(folder.path, "pepper");
    writeFileSync(pepper, PEPPER);
    await using service = serve("memory:", ["--auth", "keys", "--api-keys-pepper", `file:${pepper}`]);
    const target = new URL(await service.up()).host;
    // Not called pawl, so that nothing but `absent` can tell.
    await using prometheus = await Prometheus.start([{ job: "jobs", target, path: "/metrics", key: "none" }], QUICK_RULES, "500ms");
    const raised = await eventually("the alert", async () => {
      const [found] = await prometheus.query('ALERTS{alertstate="firing",alertname="PawlUnseen"}');
      return found?.metric;
    });
    expect(raised).toMatchObject({ severity: "critical" });
  });
});
