import { describe, expect, test } from "vitest";
import { task } from "../../core/jobs/task.js";
import { openTest } from "../../testing/open.js";
import { bareScheduler } from "../../testing/scheduler.js";

const work = task<number, void>("work", () => {});

describe("explain", () => {
  test("answers by id, by handle, and by anything that has an id", async () => {
    const { scheduler } = bareScheduler({ tasks: [work] });
    const job = await scheduler.enqueue(work, 1, { delay: "1h" });
    const explanation = await job.explain();
    expect(explanation).toMatchObject({
      job: job.id,
      state: "scheduled",
      reasons: [{ kind: "due" }, { kind: "unserved", lacks: [{ kind: "worker" }] }],
    });
    expect(explanation.text).toMatch(/^It is due in 60 min, at .*Z\. No worker is live\.$/);
    expect(await scheduler.jobs.explain(job.id)).toEqual(explanation);
    expect(await scheduler.jobs.explain({ id: job.id.toUpperCase() })).toEqual(explanation);
  });

  test.each([["42"], ["01890000-0000-7000-8000-000000000001"], [{ id: "" }]])("knows nothing of %o", async (job) => {
    const { scheduler } = bareScheduler({ tasks: [work] });
    await expect(scheduler.jobs.explain(job)).rejects.toMatchObject({ code: "job_unknown" });
  });

  test("does not tell one tenant of another's jobs", async () => {
    const { scheduler } = bareScheduler({ tasks: [work] });
    const job = await scheduler.enqueue(work, 1, { tenant: "acme" });
    await expect(scheduler.forTenant("umbrella").jobs.explain(job)).rejects.toMatchObject({ code: "job_unknown" });
    expect(await scheduler.forTenant("acme").jobs.explain(job)).toMatchObject({ state: "ready" });
  });

  test("follows a job to its end", async () => {
    const { pawl, advance, close } = await openTest({ tasks: [work], work: { name: "ana", concurrency: 1 } });
    const job = await pawl.enqueue(work, 1, { delay: "10s" });
    expect(await job.explain()).toMatchObject({ reasons: [{ kind: "due" }], estimatedStart: expect.any(Date) });
    await advance("11s");
    expect(await job.explain()).toMatchObject({ state: "succeeded", reasons: [{ kind: "finished", state: "succeeded" }] });
    expect(await job.explain()).not.toHaveProperty("estimatedStart");
    await close();
  });
});
