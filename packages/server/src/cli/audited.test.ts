import { hostname, userInfo } from "node:os";
import { open, task } from "pawl";
import { describe, expect, test } from "vitest";
import { Rig } from "../../../../test/support/rig.js";
import { CONTROL } from "./audited.js";

const fails = task("fails", { retry: 0 }, () => {
  throw new Error("no");
});

async function auditOf({ pawl }: Rig): Promise<readonly (readonly [string, string | undefined])[]> {
  return (await pawl.audit.list()).entries.map(({ action, subject }) => [action, subject] as const).reverse();
}

describe("what somebody does at a store", () => {
  test("is told to its audit log before it is done: what, to what, by whom at which machine", async () => {
    await using rig = await Rig.start({ keys: { pepper: "a pepper of sixteen bytes or more" } });
    const { id } = await rig.pawl.enqueue("mail", 1, { delay: "1h", queue: "post" });
    await rig.pawl.schedules.put("nightly", "mail", { every: "1d" });
    await rig.do("jobs", "retry", id);
    await rig.do("jobs", "cancel", id, "--yes");
    await rig.do("queues", "pause", "post");
    await rig.do("tasks", "set", "mail", "--concurrency", "3");
    await rig.do("schedules", "pause", "nightly");
    await rig.do("schedules", "backfill", "nightly", "--from", "3d", "--to", "2d", "--dry-run");
    expect(await auditOf(rig)).toEqual([
      ["jobs.retry", `job:${id}`],
      ["jobs.cancel", `job:${id}`],
      ["queues.pause", "queue:post"],
      ["tasks.set", "task:mail"],
      ["schedules.pause", "schedule:nightly"],
    ]);
    const { entries } = await rig.pawl.audit.list();
    expect(new Set(entries.map(({ actor }) => actor))).toEqual(new Set([`cli:${userInfo().username}@${hostname()}`]));
    expect(await rig.pawl.audit.verify()).toMatchObject({ ok: true });
  });

  test("is told once where it is one action on many jobs", async () => {
    await using rig = await Rig.start({ tasks: [fails] });
    await rig.pawl.enqueueMany(fails, [undefined, undefined, undefined]);
    await rig.pawl.work();
    await expect.poll(async () => (await rig.pawl.counts()).dead).toBe(3);
    for (const worker of rig.pawl.localWorkers()) await worker.stop();
    expect((await rig.do("dead", "redrive", "--task", "fails", "--yes")).out).toBe("3 jobs redriven\n");
    const { entries } = await rig.pawl.audit.list();
    expect(entries).toMatchObject([{ action: "dead.redrive", details: { task: "fails" } }]);
  });

  test("is not told where it only looks", async () => {
    await using rig = await Rig.start();
    const { id } = await rig.pawl.enqueue("mail");
    for (const argv of [["jobs", "list"], ["jobs", "show", id], ["queues", "list"], ["doctor"], ["top", "--once"], ["enqueue", "mail"]])
      await rig.do(...argv);
    expect(await auditOf(rig)).toEqual([]);
  });

  test("does not happen where it cannot be told", async () => {
    await using rig = await Rig.start();
    const { id } = await rig.pawl.enqueue("mail");
    rig.pawl.audit.record = () => Promise.reject(new Error("the log is full"));
    expect(await rig.do("jobs", "cancel", id, "--yes")).toMatchObject({ exit: 1, err: expect.stringContaining("the log is full") });
    expect((await rig.pawl.jobs.get(id)).state).toBe("ready");
  });

  /** Verbs that change nothing, or whose change is told by the history of the jobs they make. */
  const READING: Readonly<Record<string, readonly string[]>> = {
    jobs: ["get", "list", "history", "historyPage", "logs", "logPage", "explain", "wait", "result"],
    dead: ["list", "count", "groups"],
    queues: ["get", "list"],
    tasks: ["get", "list"],
    tenants: ["get", "list", "export", "purges"],
    breakers: ["get", "list"],
    limits: ["list"],
    schedules: ["get", "list", "preview", "ticks"],
    targets: ["get", "list"],
    keys: ["get", "list", "as", "verify", "recall", "remembered"],
  };

  /** What the classes behind them keep to themselves. */
  const OWN = ["constructor", "view", "partsOf", "redact"];

  test.each(Object.keys(READING))("is known to be told or only looked at: every verb of pawl.%s", async (noun) => {
    await using pawl = await open("memory:", { maintenance: false });
    const known = [...Object.keys(CONTROL[noun] ?? {}), ...(READING[noun] ?? [])];
    expect(verbsOf(pawl[noun as "jobs"]).filter((verb) => !known.includes(verb) && !OWN.includes(verb))).toEqual([]);
  });
});

function verbsOf(noun: object): readonly string[] {
  const above = Object.getPrototypeOf(noun) as object | null;
  if (above === null) return [];
  const own = Object.getOwnPropertyNames(noun).filter((name) => typeof (noun as Record<string, unknown>)[name] === "function");
  return [...own, ...verbsOf(above)];
}
