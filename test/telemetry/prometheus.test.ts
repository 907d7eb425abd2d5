import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Pawl } from "pawl";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { alerts, alertsYaml } from "../../packages/server/src/telemetry/metrics/alerts.js";
import { dashboardQueries } from "../../packages/server/src/telemetry/metrics/dashboard.js";
import { type Metrics, metricsOf } from "../../packages/server/src/telemetry/metrics/metrics.js";
import { eventually } from "../support/eventually.js";
import { Prometheus, promtool, whyNoPrometheus } from "../support/prometheus.js";
import { ALERT_CASES } from "./troubles.js";

/** 15 min become 30 s: the one factor by which all times of the rules are shorter. */
const SCALE = 1 / 30;
const RULES = alerts(SCALE);
const MAX_FOR_SECONDS = Math.max(...RULES.map((rule) => rule.for));
/** ms; a machine that stands still may take away the half of any time */
const TIMEOUT_MS = 140_000;

const reason = whyNoPrometheus();

describe.skipIf(reason !== undefined)(reason === undefined ? "on a real Prometheus" : `on a real Prometheus (${reason})`, () => {
  const pawls: Pawl[] = [];
  const metrics = new Map<string, Metrics>();
  const scrapes = new Map<string, number>();
  const server = createServer(async (request, response) => {
    const job = request.url?.slice(1) ?? "";
    const own = metrics.get(job);
    const answered = scrapes.get(job) ?? 0;
    scrapes.set(job, answered + 1);
    if (answered >= (ALERT_CASES[job]?.answers ?? Number.POSITIVE_INFINITY)) return void response.writeHead(503).end();
    response.setHeader("content-type", own?.contentType ?? "text/plain").end(await own?.text());
  });
  let prometheus: Prometheus;

  beforeAll(async () => {
    for (const [name, trouble] of Object.entries(ALERT_CASES)) {
      const pawl = await trouble.open();
      pawls.push(pawl);
      metrics.set(name, metricsOf(pawl, { ...trouble.metrics, fresh: 0, process: false }));
    }
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const target = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const scraped = Object.keys(ALERT_CASES).map((job) => ({ job, target, path: `/${job}` }));
    prometheus = await Prometheus.start(scraped, alertsYaml(RULES), "500ms");
  });

  afterAll(async () => {
    await prometheus?.[Symbol.asyncDispose]();
    server.close();
    for (const own of metrics.values()) own.stop();
    await Promise.all(pawls.map((pawl) => pawl.close()));
  });

  const firing = async () =>
    new Set((await prometheus.query('ALERTS{alertstate="firing"}')).map(({ metric }) => `${metric.job} ${metric.alertname}`));

  test(
    "every alert is raised by a Pawl in that condition",
    async () => {
      const expected = Object.entries(ALERT_CASES).flatMap(([name, { raises }]) => raises.map((alert) => `${name} ${alert}`));
      expect(new Set(expected.map((one) => one.split(" ")[1]))).toEqual(new Set(RULES.map(({ name }) => name)));
      const missing = new Set(expected);
      await eventually(
        () => `these were raised: ${[...missing].join(", ")}`,
        async () => {
          for (const one of await firing()) missing.delete(one);
          return missing.size === 0;
        },
        TIMEOUT_MS,
      );
    },
    2 * TIMEOUT_MS,
  );

  test(
    "none is raised by a healthy one for longer than any of them waits",
    async () => {
      // A machine that stands still is late, and rightly says so: it has to be well for a stretch, not always.
      const stretch = `${Math.round((MAX_FOR_SECONDS + 2) * 1_000)}ms`;
      await eventually(
        "a stretch in which the healthy one raised nothing",
        async () => {
          const [seen] = await prometheus.query(`count_over_time(up{job="healthy"}[${stretch}])`);
          const raised = await prometheus.query(`count_over_time(ALERTS{job="healthy",alertstate="firing"}[${stretch}])`);
          const age = await prometheus.query(`time() - min_over_time(timestamp(up{job="healthy"})[${stretch}:500ms])`);
          return seen !== undefined && raised.length === 0 && Number(age[0]?.value[1]) > MAX_FOR_SECONDS;
        },
        TIMEOUT_MS,
      );
    },
    2 * TIMEOUT_MS,
  );

  test("what is paused is not called stuck", async () => {
    const raised = await prometheus.query('ALERTS{job="paused",alertname=~"PawlNothingSettled|PawlLowPriorityWaiting"}');
    expect(raised).toEqual([]);
    expect(await prometheus.query('last_over_time(pawl_jobs{job="paused",queue="mail",state="ready"}[1m]) == 1')).toHaveLength(1);
  });

  test("every rule and every scrape is well", async () => {
    expect((await prometheus.rules()).filter(({ health }) => health !== "ok")).toEqual([]);
    const up = Object.values(ALERT_CASES).filter(({ answers }) => answers === undefined).length;
    await eventually("all are up", async () => (await prometheus.query("sum(up)"))[0]?.value[1] === String(up));
  });

  test.each(dashboardQueries())("the dashboard's query of $panel answers with data: $expr", async ({ expr }) => {
    const query = expr.replaceAll('job="$job"', 'job=~".+"').replaceAll("$__rate_interval", "10s");
    const found = await prometheus.query(query);
    expect(found.length).toBeGreaterThan(0);
    expect(found.some(({ value }) => Number.isFinite(Number(value[1])))).toBe(true);
  });

  test("Prometheus's own checker finds nothing wrong with what is exposed", async () => {
    for (const own of metrics.values()) expect(await promtool(["check", "metrics"], await own.text())).toBe("");
  });
});
