import { describe, expect, test } from "vitest";
import { exponential } from "../../core/jobs/retry.js";
import { type TaskOptions, task } from "../../core/jobs/task.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import type { EnqueueOptions, QueueDefaults } from "../options.js";
import { JobPlanner } from "./job-plan.js";

function planned(job: EnqueueOptions | undefined, ofTask: TaskOptions = {}, queues: Record<string, QueueDefaults> = {}, tenant?: string) {
  const { extras, ...plan } = new JobPlanner(queues, tenant).plan(
    task("mail.send", ofTask, () => {}),
    job,
  ).plan;
  return { ...plan, ...extras };
}

describe("the lane of a job", () => {
  test("is the defaults where nobody says anything", () => {
    expect(planned(undefined)).toEqual({ lane: { queue: "default", priority: 5, tenant: "default", task: "mail.send" }, options: undefined });
  });

  test("takes the queue of the job before that of its task", () => {
    expect(planned({ queue: "a" }, { queue: "b" }).lane.queue).toBe("a");
    expect(planned({}, { queue: "b" }).lane.queue).toBe("b");
  });

  test.each([
    ["the job", { priority: 1 }, { priority: 2 }, { priority: 3 }, 1],
    ["then the task", {}, { priority: 2 }, { priority: 3 }, 2],
    ["then the queue", {}, {}, { priority: 3 }, 3],
    ["then the defaults", {}, {}, {}, DEFAULTS.job.priority],
  ])("takes its priority from %s", (_, job, ofTask, ofQueue, priority) => {
    expect(planned({ queue: "q", ...job }, ofTask, { q: ofQueue }).lane.priority).toBe(priority);
  });

  test.each([
    ["low", 2],
    ["normal", 5],
    ["high", 7],
    ["critical", 9],
  ] as const)("knows the priority %s", (priority, level) => {
    expect(planned({ priority }).lane.priority).toBe(level);
  });

  test("treats an option that is undefined as left out", () => {
    const given = { queue: undefined, delay: undefined, unique: undefined } as unknown as EnqueueOptions;
    expect(planned(given)).toEqual(planned(undefined));
  });
});

describe("what is stored with a job", () => {
  test("is nothing where nothing differs from the defaults", () => {
    expect(
      planned({ maxCrashes: undefined } as unknown as EnqueueOptions, { retry: 9, timeout: "1h" }, { default: { retry: 1 } }).options,
    ).toBeUndefined();
  });

  test("has the retry policy and timeout of the job alone, in ms", () => {
    expect(planned({ retry: ["1s", 5], timeout: "30s" }, { retry: 9, timeout: "1h" }).options).toEqual({ retry: [1_000, 5], timeout: 30_000 });
    expect(planned({ retry: exponential({ min: "2s" }) }).options?.retry).toMatchObject({ kind: "exponential", min: 2_000 });
  });

  test.each(["finishWithin", "startWithin"] as const)("has the %s, wherever it was set", (name) => {
    expect(planned({ [name]: "1s" }, { [name]: "2s" }, { default: { [name]: "3s" } }).options).toEqual({ [name]: 1_000 });
    expect(planned({}, { [name]: "2s" }, { default: { [name]: "3s" } }).options).toEqual({ [name]: 2_000 });
    expect(planned(undefined, {}, { default: { [name]: "3s" } }).options).toEqual({ [name]: 3_000 });
  });

  test("has the crash limit and at-most-once of its task", () => {
    expect(planned(undefined, { maxCrashes: 7, atMostOnce: true }).options).toEqual({ maxCrashes: 7, atMostOnce: true });
  });

  test("has its tags once each", () => {
    expect(planned({ tags: ["b", "a", "b"] }).options).toEqual({ tags: ["b", "a"] });
    expect(planned({ tags: [] }).options).toBeUndefined();
  });

  test("does not take a queue called like a property of objects for one that is configured", () => {
    expect(planned({ queue: "constructor" }).lane).toMatchObject({ queue: "constructor", priority: 5 });
  });
});

describe("time", () => {
  test("is a delay in ms, and none at all if it is nothing", () => {
    expect(planned({ delay: "24h" }).delay).toBe(86_400_000);
    expect(planned({ delay: 0 })).not.toHaveProperty("delay");
  });

  test.each([new Date("2031-05-06T07:08:09Z"), Date.UTC(2031, 4, 6, 7, 8, 9), "2031-05-06T09:08:09+02:00"])("is an instant given as %o", (runAt) => {
    expect(planned({ runAt }).runAt).toBe(Date.UTC(2031, 4, 6, 7, 8, 9));
  });
});

describe("a key", () => {
  test("alone means one unfinished job, and the existing one for who comes second", () => {
    expect(planned({ unique: "k" })).toMatchObject({ unique: { key: "k", hold: "unfinished", onConflict: "existing" }, options: { uniqueKey: "k" } });
  });

  test("can be held until the start or for a period, and refuse or replace", () => {
    expect(planned({ unique: { key: "k", for: "unstarted", onConflict: "replace" } }).unique).toEqual({
      key: "k",
      hold: "unstarted",
      onConflict: "replace",
    });
    expect(planned({ unique: { key: "k", for: "1m", onConflict: "reject" } }).unique).toEqual({ key: "k", hold: 60_000, onConflict: "reject" });
    expect(planned({ unique: { key: "k" } }).unique).toEqual({ key: "k", hold: "unfinished", onConflict: "existing" });
  });
});

describe("dependencies", () => {
  const a = "01890000-0000-7000-8000-00000000000a";
  const b = "01890000-0000-7000-8000-00000000000b";

  test("can be ids, or anything with an id, one or many, and are counted once", () => {
    expect(planned({ dependsOn: a }).dependsOn).toEqual({ parents: [a], onDependencyDeath: "die" });
    expect(planned({ dependsOn: [{ id: a }, b.toUpperCase(), a], onDependencyDeath: "wait" }).dependsOn).toEqual({
      parents: [a, b],
      onDependencyDeath: "wait",
    });
  });

  test("may be none", () => {
    expect(planned({ dependsOn: [] })).not.toHaveProperty("dependsOn");
  });
});

describe("the plan of no options", () => {
  test("is made once for a task", () => {
    const planner = new JobPlanner({});
    const mail = task("mail.send", () => {});
    expect(planner.plan(mail, undefined)).toBe(planner.plan(mail, undefined));
  });

  test("is never shared between two objects of options, even if they are one object changed", () => {
    const planner = new JobPlanner({});
    const mail = task("mail.send", () => {});
    const options: { unique: string } = { unique: "one" };
    expect(planner.plan(mail, options).plan.extras?.unique?.key).toBe("one");
    options.unique = "two";
    expect(planner.plan(mail, options).plan.extras?.unique?.key).toBe("two");
  });
});
