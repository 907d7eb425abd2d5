import { hostname, userInfo } from "node:os";
import { open, task } from "pawl";
import { serviceOf } from "pawl/service";
import { describe, expect, test } from "vitest";
import { CliFixture } from "../../../../../test/support/fixtures/cli-fixture.js";
import { AUDITED_ACTIONS } from "./audited-actions.js";

const fails = task("fails", { retry: 0 }, () => {
  throw new Error("no");
});

async function auditOf({ pawl }: CliFixture): Promise<readonly (readonly [string, string | undefined])[]> {
  return (await serviceOf(pawl).audit.list()).items.map(({ action, subject }) => [action, subject] as const).reverse();
}

describe("what somebody does at a store", () => {
  test("is told to its audit log before it is done: what, to what, by whom at which machine", async () => {
    await using fixture = await CliFixture.start({ apiKeys: { pepper: "a pepper of sixteen bytes or more" } });
    const { id } = await fixture.pawl.enqueue("mail", 1, { delay: "1h", queue: "post" });
    await fixture.pawl.schedules.put("nightly", "mail", { every: "1d" });
    await fixture.run("jobs", "promote", id);
    await fixture.run("jobs", "cancel", id, "--yes");
    await fixture.run("queues", "pause", "post");
    await fixture.run("tasks", "update", "mail", "--concurrency", "3");
    await fixture.run("schedules", "pause", "nightly");
    await fixture.run("schedules", "backfill", "nightly", "--from", "3d", "--to", "2d", "--dry-run");
    expect(await auditOf(fixture)).toEqual([
      ["jobs.promote", `job:${id}`],
      ["jobs.cancel", `job:${id}`],
      ["queues.pause", "queue:post"],
      ["tasks.update", "task:mail"],
      ["schedules.pause", "schedule:nightly"],
    ]);
    const { items: entries } = await serviceOf(fixture.pawl).audit.list();
    expect(new Set(entries.map(({ actor }) => actor))).toEqual(new Set([`cli:${userInfo().username}@${hostname()}`]));
    expect(await serviceOf(fixture.pawl).audit.verify()).toMatchObject({ ok: true });
  });

  test("is told once where it is one action on many jobs", async () => {
    await using fixture = await CliFixture.start({ tasks: [fails] });
    await fixture.pawl.enqueueMany(fails, [undefined, undefined, undefined]);
    await fixture.pawl.work();
    await expect.poll(async () => (await fixture.pawl.counts()).dead).toBe(3);
    for (const worker of fixture.pawl.workers.local()) await worker.stop();
    expect((await fixture.run("dead", "redrive", "--task", "fails", "--yes")).out).toBe("3 jobs redriven\n");
    const { items: entries } = await serviceOf(fixture.pawl).audit.list();
    expect(entries).toMatchObject([{ action: "dead.redrive", details: { task: "fails" } }]);
  });

  test("is not told where it only looks", async () => {
    await using fixture = await CliFixture.start();
    const { id } = await fixture.pawl.enqueue("mail");
    for (const argv of [["jobs", "list"], ["jobs", "show", id], ["queues", "list"], ["doctor"], ["top", "--once"], ["enqueue", "mail"]])
      await fixture.run(...argv);
    expect(await auditOf(fixture)).toEqual([]);
  });

  test("does not happen where it cannot be told", async () => {
    await using fixture = await CliFixture.start();
    const { id } = await fixture.pawl.enqueue("mail");
    serviceOf(fixture.pawl).audit.record = () => Promise.reject(new Error("the log is full"));
    expect(await fixture.run("jobs", "cancel", id, "--yes")).toMatchObject({ exit: 1, err: expect.stringContaining("the log is full") });
    expect((await fixture.pawl.jobs.get(id)).state).toBe("ready");
  });

  /** Verbs that change nothing, or whose change is told by the history of the jobs they make. */
  const READING: Readonly<Record<string, readonly string[]>> = {
    jobs: ["get", "list", "count", "history", "logs", "explain", "wait", "result"],
    dead: ["list", "count", "groups"],
    queues: ["get", "list"],
    tasks: ["get", "list"],
    tenants: ["get", "list", "export"],
    purges: ["list"],
    breakers: ["get", "list"],
    limits: ["list", "get"],
    lanes: ["list"],
    workers: ["list", "get", "local"],
    schedules: ["get", "list", "preview", "ticks"],
    targets: ["get", "list"],
    apiKeys: ["get", "list", "forTenant", "verify", "recall", "remembered", "status"],
  };

  /** What the classes behind them keep to themselves. */
  const OWN = ["constructor", "view", "depsOf", "redact"];

  test.each(Object.keys(READING))("is known to be told or only looked at: every verb of %s", async (noun) => {
    await using pawl = await open("memory:", { maintenance: false });
    const verbs = [...Object.keys(AUDITED_ACTIONS[noun] ?? {}), ...(READING[noun] ?? [])];
    const nouns: object = noun in pawl ? pawl : serviceOf(pawl);
    expect(verbsOf(Reflect.get(nouns, noun) as object).filter((verb) => !verbs.includes(verb) && !OWN.includes(verb))).toEqual([]);
  });
});

function verbsOf(noun: object): readonly string[] {
  const above = Object.getPrototypeOf(noun) as object | null;
  if (above === null) return [];
  const own = Object.getOwnPropertyNames(noun).filter((name) => typeof (noun as Record<string, unknown>)[name] === "function");
  return [...own, ...verbsOf(above)];
}
