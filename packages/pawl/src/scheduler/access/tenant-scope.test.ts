import { describe, expect, test } from "vitest";
import { bareScheduler } from "../../testing/scheduler.js";
import type { Jobs } from "../scheduler.js";

describe("a scheduler for one tenant", () => {
  test("enqueues for that tenant, and for no other", async () => {
    const { scheduler } = bareScheduler();
    const acme = scheduler.forTenant("acme");
    expect(await (await acme.enqueue("t")).get()).toMatchObject({ tenant: "acme" });
    expect(await (await acme.enqueue("t", 1, { tenant: "acme" })).get()).toMatchObject({ tenant: "acme" });
    await expect(acme.enqueue("t", 1, { tenant: "other" })).rejects.toMatchObject({ code: "option_invalid" });
    await expect(acme.enqueueMany("t", [1], { tenant: "other" })).rejects.toMatchObject({ code: "option_invalid" });
    await expect(acme.enqueueMany("t", [1], { each: () => ({ tenant: "other" }) })).rejects.toMatchObject({ code: "option_invalid" });
  });

  test.each<Exclude<keyof Jobs, "list" | "count" | "bulk" | "restore">>([
    "get",
    "history",
    "logs",
    "cancel",
    "pause",
    "resume",
    "promote",
    "redrive",
    "rerun",
    "delete",
    "wait",
    "result",
  ])("cannot tell another's job from none with %s", async (verb) => {
    const { scheduler } = bareScheduler();
    const { id } = await scheduler.enqueue("t", "secret", { tenant: "other" });
    const call = scheduler.forTenant("acme").jobs[verb](id);
    await expect(call).rejects.toMatchObject({ code: "job_unknown", details: { job: id } });
    expect(await scheduler.jobs.get(id)).toMatchObject({ state: "ready" });
  });

  test("cannot make a job wait for another's", async () => {
    const { scheduler } = bareScheduler();
    const { id } = await scheduler.enqueue("t", 1, { tenant: "other" });
    await expect(scheduler.forTenant("acme").enqueue("t", 1, { dependsOn: id })).rejects.toMatchObject({ code: "dependency_unknown" });
  });

  test("lists, counts and deletes its own only", async () => {
    const { scheduler, attempt } = bareScheduler();
    await scheduler.enqueue("t", 1, { tenant: "acme" });
    await scheduler.enqueue("t", 2, { tenant: "other" });
    await attempt({ kind: "failed", failure: { kind: "error", name: "Error", message: "no" }, retryable: false });
    const acme = scheduler.forTenant("acme");
    expect((await acme.jobs.list()).items.map(({ input }) => input)).toEqual([1]);
    expect(await acme.dead.count()).toBe(1);
    expect(await acme.dead.delete()).toMatchObject({ changed: 1 });
    expect(await scheduler.dead.count({ tenant: "other" })).toBe(1);
    await expect(acme.jobs.list({ tenant: "other" })).rejects.toMatchObject({ code: "option_invalid" });
    expect((await acme.jobs.list({ tenant: "acme" })).items).toEqual([]);
  });

  test("has keys and idempotency keys of its own", async () => {
    const { scheduler } = bareScheduler();
    const enqueued = await Promise.all(
      ["acme", "other"].map((tenant) => scheduler.forTenant(tenant).enqueue("t", 1, { unique: "k", idempotencyKey: "r" })),
    );
    expect(enqueued.map(({ enqueued }) => enqueued)).toEqual(["created", "created"]);
  });

  test("cannot become another", () => {
    const acme = bareScheduler().scheduler.forTenant("acme");
    expect(() => acme.forTenant("other")).toThrow(expect.objectContaining({ code: "option_invalid" }));
    expect(acme.forTenant("acme")).toBeDefined();
    expect(() => acme.forTenant("")).toThrow(expect.objectContaining({ code: "name_invalid" }));
    expect(() => acme.forTenant({ tenant: "acme" } as never)).toThrow(expect.objectContaining({ code: "name_invalid" }));
  });
});
