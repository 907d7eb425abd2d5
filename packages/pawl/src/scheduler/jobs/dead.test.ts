import { describe, expect, test } from "vitest";
import { z } from "zod";
import { failure } from "../../core/jobs/failure.js";
import { task } from "../../core/jobs/task.js";
import { bareScheduler } from "../../testing/scheduler.js";

const mail = task("mail", { input: z.object({ to: z.string() }) }, () => {});
const died = { kind: "failed", failure: failure("error", "no such address"), retryable: false } as const;

/** Dead jobs: 3 of mail (one of tenant acme), 2 of other in the queue slow. */
async function graveyard() {
  const fixture = bareScheduler();
  const { scheduler, attempt, clock } = fixture;
  for (const to of ["a", "b", "c"]) {
    clock.leap(1);
    await scheduler.enqueue(mail, { to }, to === "c" ? { tenant: "acme", tags: ["vip"] } : {});
  }
  await scheduler.enqueueMany("other", [1, 2], { queue: "slow" });
  await attempt(died);
  return fixture;
}

describe("dead jobs", () => {
  test("are listed and counted by filter", async () => {
    const { scheduler } = await graveyard();
    expect((await scheduler.dead.list({ task: "mail" })).items.map(({ input }) => input)).toEqual([{ to: "c" }, { to: "b" }, { to: "a" }]);
    expect(await scheduler.dead.count()).toBe(5);
    expect(await scheduler.dead.count({ queue: "slow" })).toBe(2);
    expect(await scheduler.dead.count({ task: "mail", queue: "default" })).toBe(3);
    expect(await scheduler.dead.count({ tenant: "acme" })).toBe(1);
    expect(await scheduler.dead.count({ tag: "vip" })).toBe(1);
    expect(await scheduler.dead.count({ failure: "timeout" })).toBe(0);
  });

  test("are grouped by what they died of, and redriven by that", async () => {
    const { scheduler } = await graveyard();
    const [mails, others] = (await scheduler.dead.groups()).items;
    expect(mails).toMatchObject({ task: "mail", kind: "error", message: "no such address", count: 3, sample: { task: "mail", state: "dead" } });
    expect(others).toMatchObject({ task: "other", count: 2 });
    expect((await scheduler.dead.groups({ tenant: "acme" })).items).toMatchObject([{ count: 1 }]);
    expect((await scheduler.forTenant("acme").dead.groups()).items).toMatchObject([{ count: 1 }]);
    const first = await scheduler.dead.groups({}, { limit: 1 });
    expect(first.items).toHaveLength(1);
    expect((await scheduler.dead.groups({}, { limit: 1, cursor: first.next as string })).items).not.toEqual(first.items);
    expect(await scheduler.dead.redrive({ fingerprint: others?.fingerprint ?? "" })).toMatchObject({ changed: 2 });
    expect((await scheduler.dead.groups()).items).toHaveLength(1);
  });

  test.each([
    ["a filter that groups do not take", { tag: "vip" }, {}, /filter\.tag/],
    ["a misspelt filter", { tsk: "mail" }, {}, /did you mean task/],
    ["a cursor that no page ended with", {}, { cursor: "x" }, /page\.cursor/],
    ["too many groups", {}, { limit: 1_001 }, /page\.limit/],
  ])("are not grouped by %s", async (_, filter, page, says) => {
    const { scheduler } = await graveyard();
    await expect(scheduler.dead.groups(filter as object, page as object)).rejects.toThrow(says);
  });

  test.each([
    [{ fingerprint: "4f1c" }, /filter\.fingerprint/],
    [{ since: "yesterday" }, /filter\.since/],
    [{ until: Number.NaN }, /filter\.until/],
    [{ since: "2026-02-01T00:00Z", until: "2026-01-01T00:00Z" }, /filter\.since is invalid: it is after filter\.until/],
  ])("are not listed by %o", async (filter, says) => {
    const { scheduler } = await graveyard();
    await expect(scheduler.dead.list(filter)).rejects.toThrow(says);
  });

  test("are redriven by filter, the rest is left alone", async () => {
    const { scheduler } = await graveyard();
    expect(await scheduler.dead.redrive({ task: "mail" })).toEqual({ changed: 3, skipped: 0, failed: 0, failures: [] });
    expect(await scheduler.dead.count()).toBe(2);
    expect((await scheduler.jobs.list({ state: "ready" })).items).toHaveLength(3);
  });

  test("are redriven up to a limit", async () => {
    const { scheduler } = await graveyard();
    expect(await scheduler.dead.redrive({}, { limit: 2 })).toMatchObject({ changed: 2 });
    expect(await scheduler.dead.count()).toBe(3);
  });

  test("are redriven as a trickle", async () => {
    const { scheduler, clock } = await graveyard();
    await scheduler.dead.redrive({ task: "mail" }, { pace: "10s" });
    const { items: jobs } = await scheduler.jobs.list({ task: "mail" });
    const starts = jobs.map(({ state, nextRunAt }) => (state === "ready" ? 0 : (nextRunAt as Date).getTime() - clock.now()));
    expect(starts.sort((a, b) => a - b)).toEqual([0, 10_000, 20_000]);
  });

  test("are redriven with edited inputs, and one that cannot be is named and stays", async () => {
    const { scheduler } = await graveyard();
    const report = await bareEdit(scheduler);
    expect(report).toMatchObject({ changed: 2, failed: 1, failures: [{ error: expect.objectContaining({ message: "not this one" }) }] });
    expect((await scheduler.dead.list({ task: "mail" })).items.map(({ id }) => id)).toEqual(report.failures.map(({ job }) => job));
    expect((await scheduler.jobs.list({ task: "mail", state: "ready" })).items.map(({ input }) => input)).toEqual([{ to: "c!" }, { to: "b!" }]);
  });

  test("are skipped if somebody else was faster", async () => {
    const { scheduler } = await graveyard();
    const report = await scheduler.dead.redrive(
      { task: "mail" },
      {
        edit: (input, job) => {
          if ((input as { to: string }).to === "a") void scheduler.jobs.delete(job);
          return input;
        },
      },
    );
    expect(report).toMatchObject({ changed: 2, skipped: 1, failed: 0 });
  });

  test("are deleted by filter", async () => {
    const { scheduler, records } = await graveyard();
    expect(await scheduler.dead.delete({ queue: "slow" })).toMatchObject({ changed: 2 });
    expect(await records()).toHaveLength(3);
  });

  test("are found page after page", async () => {
    const { scheduler, attempt, clock } = bareScheduler();
    await scheduler.enqueueMany(
      "t",
      Array.from({ length: 1_200 }, (_, i) => i),
    );
    while ((await attempt(died)) > 0) await clock.quiet();
    expect(await scheduler.dead.count({ failure: "error" })).toBe(1_200);
    expect(await scheduler.dead.delete()).toMatchObject({ changed: 1_200 });
    expect(await scheduler.dead.count({ failure: "error" })).toBe(0);
  });

  test.each([
    [{ state: "ready" }, {}],
    [{}, { limit: 0 }],
    [{}, { evry: 1 }],
    [{}, { pace: 0 }],
    [{}, { edit: 7 }],
  ])("redrive refuses %o with %o", async (filter, how) => {
    const { scheduler } = await graveyard();
    await expect(scheduler.dead.redrive(filter as object, how as object)).rejects.toMatchObject({ code: "option_invalid" });
    expect(await scheduler.dead.count()).toBe(5);
  });
});

function bareEdit(scheduler: Awaited<ReturnType<typeof graveyard>>["scheduler"]) {
  return scheduler.dead.redrive(
    { task: "mail" },
    {
      edit(input) {
        const { to } = input as { to: string };
        if (to === "a") throw new Error("not this one");
        return { to: `${to}!` };
      },
    },
  );
}
