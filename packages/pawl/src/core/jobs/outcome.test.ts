import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../values/bounds.js";
import { DEFAULTS } from "../values/defaults.js";
import { failure } from "./failure.js";
import { JOB_STATES } from "./job.js";
import { allowed } from "./lifecycle.js";
import { type AttemptsSoFar, attemptsSoFar, deathOf, decide, isSuspect, OUTCOMES, type Outcome, type Patch, withIntent } from "./outcome.js";
import type { RetryPolicy } from "./retry.js";

const FRESH: AttemptsSoFar = { attempts: 0, crashes: 0, maxCrashes: 3, atMostOnce: false };
const BROKE = failure("error", "it broke");
const FAILED: Outcome = { kind: "failed", failure: BROKE, retryable: true };
const judge = (outcome: Outcome, soFar: Partial<AttemptsSoFar> = {}, retry: RetryPolicy = [1_000, 2_000]): Patch =>
  decide({ ...FRESH, ...soFar }, outcome, retry, () => 0);

describe("decide", () => {
  it("ends a success, with its output, and counts the attempt", () => {
    expect(judge({ kind: "succeeded", output: "1" }, { attempts: 1 })).toEqual({
      outcome: "succeeded",
      next: "succeeded",
      attempts: 2,
      crashes: 0,
      output: "1",
    });
    expect(judge({ kind: "succeeded" })).toEqual({ outcome: "succeeded", next: "succeeded", attempts: 1, crashes: 0 });
  });

  it("retries a failure after the delay of its attempt, until there are none left", () => {
    const failed = { outcome: "failed", crashes: 0, failure: BROKE };
    expect(judge(FAILED)).toEqual({ ...failed, next: "scheduled", delay: 1_000, attempts: 1 });
    expect(judge(FAILED, { attempts: 1 })).toEqual({ ...failed, next: "scheduled", delay: 2_000, attempts: 2 });
    expect(judge(FAILED, { attempts: 2 })).toEqual({ ...failed, next: "dead", attempts: 3 });
  });

  it("retries what was decided by who ran it, but not past a deadline, nor what may run only once", () => {
    const decided: Outcome = { ...FAILED, retryAfter: 700, again: true };
    expect(judge(decided, { attempts: 9 })).toMatchObject({ next: "scheduled", delay: 700, attempts: 10 });
    expect(judge(decided, { remaining: 500 })).toMatchObject({ next: "dead" });
    expect(judge(decided, { atMostOnce: true })).toMatchObject({ next: "dead" });
  });

  it("skips the calendar for a retry without delay", () => {
    expect(judge(FAILED, {}, [0])).toEqual({ outcome: "failed", next: "ready", attempts: 1, crashes: 0, failure: BROKE });
  });

  it("does not retry what cannot be retried, or may run only once", () => {
    expect(judge({ ...FAILED, retryable: false })).toMatchObject({ next: "dead", attempts: 1 });
    expect(judge(FAILED, { atMostOnce: true })).toMatchObject({ next: "dead", attempts: 1 });
  });

  it("waits as long as the failure asks for, if there is a retry left", () => {
    expect(judge({ ...FAILED, retryAfter: 50 })).toMatchObject({ next: "scheduled", delay: 50 });
    expect(judge({ ...FAILED, retryAfter: 0 })).toMatchObject({ next: "ready" });
    expect(judge({ ...FAILED, retryAfter: 50 }, { attempts: 2 })).toMatchObject({ next: "dead" });
  });

  it("makes no retry that would start at or after the deadline", () => {
    expect(judge(FAILED, { remaining: 1_001 })).toMatchObject({ next: "scheduled" });
    expect(judge(FAILED, { remaining: 1_000 })).toMatchObject({ next: "dead" });
    expect(judge(FAILED, { remaining: -5 }, [0])).toMatchObject({ next: "dead" });
    expect(judge({ kind: "snoozed", delay: 500 }, { remaining: 500 })).toMatchObject({ next: "dead", failure: { kind: "deadline" } });
  });

  it("says that such a job died of its deadline, beside what its attempt failed with", () => {
    const late = { kind: "deadline", causes: [{ name: BROKE.name, message: BROKE.message }] };
    expect(judge(FAILED, { remaining: 1_000 })).toMatchObject({ next: "dead", failure: BROKE, diedOf: late });
    expect(judge({ ...FAILED, retryAfter: 9_000 }, { remaining: 5_000 })).toMatchObject({ next: "dead", failure: BROKE, diedOf: late });
    const locked = failure("payload_undecryptable", "its key is not here");
    const putOff = judge({ kind: "snoozed", delay: 500, failure: locked }, { remaining: 500 });
    expect(putOff).toMatchObject({ outcome: "snoozed", next: "dead", failure: locked, diedOf: { kind: "deadline" } });
    expect(judge({ kind: "snoozed", delay: 500 }, { remaining: 500 }), "nothing went wrong with it before").not.toHaveProperty("diedOf");
  });

  it("keeps the causes of what such a job died of within their bound", () => {
    const causes = Array.from({ length: BOUNDS.failureCauses }, (_, at) => ({ name: "Error", message: `cause ${at}` }));
    const { diedOf } = judge({ ...FAILED, failure: { ...BROKE, causes } }, { remaining: 1_000 });
    expect(diedOf?.causes).toEqual([expect.objectContaining({ message: BROKE.message }), ...causes.slice(0, -1)]);
  });

  it("leaves a job that used up its retries its own failure, however late it is", () => {
    expect(judge(FAILED, { attempts: 2, remaining: 5 })).not.toHaveProperty("diedOf");
    expect(judge({ ...FAILED, retryable: false }, { remaining: 5 })).not.toHaveProperty("diedOf");
  });

  it("leaves no delay on a job that is dead", () => {
    expect(judge(FAILED, { remaining: 0 })).not.toHaveProperty("delay");
  });

  it("follows the default policy where a retry function fails, says so, and keeps the failure", () => {
    const broken: RetryPolicy = () => {
      throw new RangeError("no policy today");
    };
    const goesOn = { next: "scheduled", delay: 1_000, failure: BROKE };
    expect(judge(FAILED, {}, broken)).toMatchObject({ ...goesOn, retryFault: "it threw RangeError: no policy today" });
    expect(judge(FAILED, {}, () => "soon")).toMatchObject({ ...goesOn, retryFault: expect.stringContaining('it answered "soon"') });
    expect(judge({ ...FAILED, retryAfter: 5_000 }, {}, broken)).toMatchObject({ delay: 5_000, retryFault: expect.anything() });
    expect(judge(FAILED, { attempts: DEFAULTS.job.retries }, broken)).toMatchObject({ next: "dead", failure: BROKE, retryFault: expect.anything() });
    expect(judge(FAILED)).not.toHaveProperty("retryFault");
  });

  it("spends nothing on a snooze, a release or a cancellation", () => {
    expect(judge({ kind: "snoozed", delay: 10 }, { attempts: 1 })).toEqual({
      outcome: "snoozed",
      next: "scheduled",
      delay: 10,
      attempts: 1,
      crashes: 0,
    });
    expect(judge({ kind: "snoozed", delay: 0 })).toEqual({ outcome: "snoozed", next: "ready", attempts: 0, crashes: 0 });
    expect(judge({ kind: "released" }, { attempts: 1 })).toEqual({ outcome: "released", next: "ready", attempts: 1, crashes: 0 });
    expect(judge({ kind: "cancelled" }, { attempts: 1 })).toEqual({ outcome: "cancelled", next: "cancelled", attempts: 1, crashes: 0 });
    expect(judge({ kind: "cancelled", reason: "stop" })).toMatchObject({ failure: { message: "stop" } });
  });

  it("spends no attempt on a crash", () => {
    expect(judge({ kind: "crashed", alone: false }, { attempts: 1 })).toEqual({ outcome: "crashed", next: "ready", attempts: 1, crashes: 1 });
  });

  it("convicts a suspect that crashed alone, at the limit and not before", () => {
    expect(judge({ kind: "crashed", alone: true }, { crashes: 1 })).toMatchObject({ next: "ready", crashes: 2 });
    expect(judge({ kind: "crashed", alone: true }, { crashes: 2 })).toMatchObject({ next: "dead", crashes: 3, failure: { kind: "poison" } });
  });

  it("never convicts for a crash in company, unless one crash is too many", () => {
    expect(judge({ kind: "crashed", alone: false }, { crashes: 9 })).toMatchObject({ next: "ready", crashes: 10 });
    expect(judge({ kind: "crashed", alone: false }, { maxCrashes: 1 })).toMatchObject({ next: "dead", failure: { kind: "poison" } });
  });

  it("does not run again what crashed and may run only once, or is past its deadline", () => {
    expect(judge({ kind: "crashed", alone: false }, { atMostOnce: true })).toMatchObject({ next: "dead", failure: { kind: "interrupted" } });
    expect(judge({ kind: "crashed", alone: false }, { remaining: 0 })).toMatchObject({ next: "dead", failure: { kind: "deadline" } });
    expect(judge({ kind: "crashed", alone: false }, { remaining: 1 })).toMatchObject({ next: "ready" });
  });

  it("is total: every outcome of every job goes where the lifecycle allows, and says all that belongs there", () => {
    const outcome: fc.Arbitrary<Outcome> = fc.oneof(
      fc.constantFrom<Outcome>({ kind: "succeeded" }, { kind: "succeeded", output: "1" }, { kind: "released" }, { kind: "cancelled" }),
      fc.record({ kind: fc.constant("snoozed" as const), delay: fc.nat({ max: 100 }) }),
      fc.record({ kind: fc.constant("crashed" as const), alone: fc.boolean() }),
      fc.record({ kind: fc.constant("failed" as const), failure: fc.constant(BROKE), retryable: fc.boolean(), retryAfter: fc.nat({ max: 100 }) }),
      fc.record({ kind: fc.constant("failed" as const), failure: fc.constant(BROKE), retryable: fc.boolean() }),
    );
    const soFar: fc.Arbitrary<AttemptsSoFar> = fc.record(
      {
        attempts: fc.nat({ max: 5 }),
        crashes: fc.nat({ max: 5 }),
        maxCrashes: fc.integer({ min: 1, max: 4 }),
        atMostOnce: fc.boolean(),
        remaining: fc.integer({ min: -50, max: 50 }),
      },
      { requiredKeys: ["attempts", "crashes", "maxCrashes", "atMostOnce"] },
    );
    const retry = fc.constantFrom<RetryPolicy>(0, 3, [0, 5, 10], () => "stop");
    fc.assert(
      fc.property(soFar, outcome, retry, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (before, ended, policy, chance) => {
        const patch = decide(before, ended, policy, () => chance);
        expect(OUTCOMES).toContain(patch.outcome);
        expect(patch.outcome).toBe(ended.kind);
        expect(allowed("running", ended.kind === "crashed" ? "reap" : "settle", patch.next)).toBe(true);
        expect("delay" in patch, "a delay with scheduled, and only then").toBe(patch.next === "scheduled");
        if (patch.next === "scheduled") expect(patch.delay).toBeGreaterThan(0);
        if (patch.next === "dead") expect(patch.failure).toBeDefined();
        expect(patch.attempts).toBe(before.attempts + (ended.kind === "succeeded" || ended.kind === "failed" ? 1 : 0));
        expect(patch.crashes).toBe(before.crashes + (ended.kind === "crashed" ? 1 : 0));
        for (const intent of ["cancel", "pause"] as const) {
          const asked = withIntent(patch, { intent, reason: "why" });
          expect(allowed("running", ended.kind === "crashed" ? "reap" : "settle", asked.next)).toBe(true);
        }
      }),
    );
  });
});

describe("withIntent", () => {
  const CANCEL = { intent: "cancel", reason: "no need" } as const;
  const PAUSE = { intent: "pause", reason: "paused" } as const;
  const base = { outcome: "failed", attempts: 1, crashes: 0, failure: BROKE } as const;

  it("changes nothing when nothing was asked", () => {
    const patch: Patch = { ...base, next: "scheduled", delay: 5 };
    expect(withIntent(patch, undefined)).toBe(patch);
  });

  it("parks what would wait, keeping its delay", () => {
    expect(withIntent({ ...base, next: "scheduled", delay: 5 }, PAUSE)).toEqual({ ...base, next: "parked", delay: 5 });
    expect(withIntent({ ...base, next: "ready" }, PAUSE)).toEqual({ ...base, next: "parked" });
  });

  it("cancels what would wait, without a delay", () => {
    for (const waits of [{ next: "scheduled", delay: 5 }, { next: "ready" }] as const) {
      expect(withIntent({ ...base, ...waits }, CANCEL)).toEqual({ ...base, next: "cancelled", failure: expect.anything() });
    }
  });

  it("gives the reason for a cancel, and after it what the attempt failed with", () => {
    const { failure: _, ...quiet } = base;
    expect(withIntent({ ...quiet, outcome: "released", next: "ready" }, CANCEL).failure).toEqual(failure("error", "no need"));
    expect(withIntent({ ...quiet, outcome: "cancelled", next: "cancelled" }, CANCEL).failure).toEqual(failure("error", "no need"));
    expect(withIntent({ ...base, next: "ready" }, CANCEL).failure).toMatchObject({
      message: "no need",
      causes: [{ name: BROKE.name, message: BROKE.message }],
    });
  });

  it("leaves the word to a worker that gave a reason of its own", () => {
    expect(withIntent({ ...base, outcome: "cancelled", next: "cancelled" }, CANCEL).failure).toEqual(BROKE);
  });

  it("leaves an end as it is", () => {
    for (const next of ["succeeded", "dead", "cancelled"] as const) {
      for (const asked of [CANCEL, PAUSE]) expect(withIntent({ ...base, next }, asked).next).toBe(next);
    }
  });
});

describe("what is known of a job", () => {
  it("is filled with the defaults", () => {
    expect(attemptsSoFar({ attempts: 1, crashes: 2, dueAt: 100 }, undefined, 500)).toEqual({
      attempts: 1,
      crashes: 2,
      maxCrashes: DEFAULTS.job.maxCrashes,
      atMostOnce: false,
    });
  });

  it("counts the deadline from the due time", () => {
    const options = { finishWithin: 1_000, maxCrashes: 7, atMostOnce: true } as const;
    expect(attemptsSoFar({ attempts: 0, crashes: 0, dueAt: 100 }, options, 500)).toEqual({
      attempts: 0,
      crashes: 0,
      maxCrashes: 7,
      atMostOnce: true,
      remaining: 600,
    });
  });

  it("makes a suspect of a job from its second crash on", () => {
    expect([0, 1, 2, 3].map(isSuspect)).toEqual([false, false, true, true]);
  });

  it("dies without an attempt when it waited too long", () => {
    expect(deathOf({ attempts: 1, crashes: 2 }, BROKE)).toEqual({ outcome: "failed", next: "dead", attempts: 1, crashes: 2, failure: BROKE });
    expect(JOB_STATES).toContain("dead");
  });
});
