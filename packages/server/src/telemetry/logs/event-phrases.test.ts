import { type Events, task } from "pawl";
import { openTest } from "pawl/testing";
import { expect, test } from "vitest";
import { type Activity, followActivity } from "../../terminal/activity.js";
import { EVENT_PHRASES } from "./event-phrases.js";
import { logTo } from "./log.js";

const fine = task<number, void>("fine", () => {});
const flaky = task<number, void>("flaky", { retry: ["2s"] }, () => {
  throw new RangeError("no answer");
});

test("the log and the live views say the same of what happens, in one wording", async () => {
  const lines: string[] = [];
  const entries: Activity[] = [];
  await using world = await openTest({ tasks: [fine, flaky] });
  logTo({ level: "debug", write: (line) => void lines.push((JSON.parse(line) as { msg: string }).msg) }).follow(world.pawl);
  followActivity(world.pawl, (entry) => void entries.push(entry));
  await world.pawl.enqueueMany(fine, [1, 2]);
  await world.pawl.enqueue(flaky, 1);
  await world.pawl.queues.pause("default");
  await world.pawl.queues.resume("default");
  await world.drain();
  const texts = entries.map(({ subject, text }) => `${subject}: ${text}`);
  expect(texts).toEqual(
    expect.arrayContaining([
      "fine: 2 jobs enqueued",
      "queue default: paused",
      "queue default: resumed",
      "flaky: attempt 1 failed: no answer; again in 2.0 s",
      "flaky: dead after 2 attempts: no answer",
    ]),
  );
  expect(lines).toEqual(expect.arrayContaining(texts));
});

test("what was cancelled for a reason is told as that, not as an attempt that failed", () => {
  const phrase = EVENT_PHRASES["attempt.settled"]?.phrase({
    job: "019a0000-0000-7000-8000-000000000000" as Events["attempt.settled"]["job"],
    lane: { queue: "media", priority: 5, tenant: "acme", task: "long" },
    attempt: 1,
    worker: "ana",
    outcome: "failed",
    next: "cancelled",
    duration: 10,
    sinceDue: 20,
    failure: { kind: "error", name: "Error", message: "not wanted any more" },
  });
  expect(phrase).toMatchObject({ level: "info", mark: "note", subject: "long", text: "cancelled: not wanted any more" });
});

test("a job that died of its deadline says so, and what its last attempt failed with", () => {
  const phrase = EVENT_PHRASES["attempt.settled"]?.phrase({
    job: "019a0000-0000-7000-8000-000000000000" as Events["attempt.settled"]["job"],
    lane: { queue: "media", priority: 5, tenant: "acme", task: "long" },
    attempt: 2,
    worker: "ana",
    outcome: "failed",
    next: "dead",
    duration: 10,
    sinceDue: 20,
    failure: { kind: "error", name: "TypeError", message: "no" },
    diedOf: "deadline",
  });
  expect(phrase).toMatchObject({ level: "error", fields: { diedOf: "deadline" } });
  expect(phrase?.text).toBe("dead after 2 attempts, by its deadline; the last one failed: no");
});

test("a lease without jobs that was taken back is not worth a word", () => {
  expect(EVENT_PHRASES["leases.reaped"]?.phrase({ leases: 1, jobs: 0 })).toBeUndefined();
  expect(EVENT_PHRASES["leases.reaped"]?.phrase({ leases: 1, jobs: 2 })?.text).toBe("took back 2 jobs of workers that vanished");
});
