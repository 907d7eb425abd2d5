import { describe, expect, it } from "vitest";
import { errorTable, isPawlError, pawlError } from "../values/error.js";
import { dependencyMeaning, failureOfParent } from "./dependency.js";
import type { JobId } from "./id.js";
import { JOB_STATES } from "./job.js";
import { compareLanes, type Lane, laneKey } from "./lane.js";
import { stopBy } from "./lease.js";
import { dueTimer, lateFailure, withoutTimers } from "./timer.js";

describe("a parent's end", () => {
  it("means what the child asked for, in every state", () => {
    const table = Object.fromEntries(
      JOB_STATES.map((state) => [state, (["die", "run", "wait"] as const).map((policy) => dependencyMeaning(state, policy))]),
    );
    const waits = ["waits", "waits", "waits"];
    const died = ["dying", "satisfied", "waits"];
    expect(table).toEqual({
      blocked: waits,
      scheduled: waits,
      ready: waits,
      parked: waits,
      running: waits,
      succeeded: ["satisfied", "satisfied", "satisfied"],
      dead: died,
      cancelled: died,
    });
  });

  it("is named by the child that dies of it", () => {
    expect(failureOfParent("the-parent" as JobId)).toMatchObject({ kind: "dependency", message: expect.stringContaining("the-parent") });
  });
});

describe("a timer", () => {
  it("is the earlier of expiry and deadline, from the due time", () => {
    expect(dueTimer(100, undefined, false)).toBeUndefined();
    expect(dueTimer(100, {}, false)).toBeUndefined();
    expect(dueTimer(100, { startWithin: 5 }, false)).toEqual({ at: 105, kind: "expired" });
    expect(dueTimer(100, { finishWithin: 7 }, false)).toEqual({ at: 107, kind: "deadline" });
    expect(dueTimer(100, { startWithin: 5, finishWithin: 7 }, false)).toEqual({ at: 105, kind: "expired" });
    expect(dueTimer(100, { startWithin: 9, finishWithin: 7 }, false)).toEqual({ at: 107, kind: "deadline" });
    expect(dueTimer(100, { startWithin: 5, finishWithin: 5 }, false)).toEqual({ at: 105, kind: "expired" });
  });

  it("knows no expiry once the job has started", () => {
    expect(dueTimer(100, { startWithin: 5 }, true)).toBeUndefined();
    expect(dueTimer(100, { startWithin: 5, finishWithin: 7 }, true)).toEqual({ at: 107, kind: "deadline" });
  });

  it("says what the job dies of, and is taken off a redriven one", () => {
    expect([lateFailure("expired").kind, lateFailure("deadline").kind]).toEqual(["expired", "deadline"]);
    expect(withoutTimers({ startWithin: 1, finishWithin: 2, timeout: 3 })).toEqual({ timeout: 3 });
  });
});

describe("lanes", () => {
  const lane = (queue: string, priority: Lane["priority"], tenant: string, task: string): Lane => ({ queue, priority, tenant, task });

  it("are in the order of queue, priority, tenant and task, texts by code unit", () => {
    const ordered = [
      lane("B", 9, "z", "z"),
      lane("a", 0, "z", "z"),
      lane("a", 5, "a", "z"),
      lane("a", 5, "b", "a"),
      lane("a", 5, "b", "b"),
      lane("ä", 0, "a", "a"),
    ];
    expect([...ordered].reverse().sort(compareLanes)).toEqual(ordered);
    expect(compareLanes(lane("a", 1, "b", "c"), lane("a", 1, "b", "c"))).toBe(0);
  });

  it("have keys of their own, however their names are cut", () => {
    const keys = [lane("a", 1, "b", "c"), lane("a1", 1, "b", "c"), lane("a", 1, "bc", "c"), lane("a", 1, "b", "cc"), lane("a", 2, "b", "c")].map(
      laneKey,
    );
    expect(new Set(keys).size).toBe(keys.length);
  });
});

describe("a worker that cannot renew", () => {
  it("stops before its lease ends, by a fifth of a short one and two seconds of a long one", () => {
    expect(stopBy(100, 5_000)).toBe(4_100);
    expect(stopBy(100, 15_000)).toBe(13_100);
    expect(stopBy(100, 600_000)).toBe(598_100);
  });
});

describe("errors", () => {
  it("say what happened and what to do, with the values in place", () => {
    const error = pawlError("job_unknown", { job: "j1" });
    expect(error).toMatchObject({ name: "PawlError", code: "job_unknown", details: { job: "j1" } });
    expect(error.message).toMatch(/^there is no job "j1"\. Check the id/);
    expect(isPawlError(error, "job_unknown")).toBe(true);
    expect(isPawlError(error, "closed")).toBe(false);
    expect(isPawlError(new Error("x"))).toBe(false);
  });

  it("keep their cause, and shorten hostile values", () => {
    const cause = new Error("why");
    expect(pawlError("closed", { what: "x".repeat(10_000) }, cause).message.length).toBeLessThan(400);
    expect(pawlError("closed", {}, cause).cause).toBe(cause);
    expect(pawlError("closed", { what: "a {what} $& b" }).message).toContain("a {what} $& b is closed");
  });

  it("have the values themselves for details; in the text they are in quotes, as JSON where they are hostile", () => {
    const hostile = 'a "b"\n\u001b[31m';
    const error = pawlError("time_zone_unknown", { zone: hostile });
    expect(error.details).toEqual({ zone: hostile });
    expect(error.message).toMatch(/^there is no time zone "a \\"b\\"\\n\\u001b\[31m"\. Use/);
    expect(pawlError("duration_invalid", { what: "delay", value: -1 }).message).toMatch(/^delay -1 is not a duration/);
  });

  it("have a message and a help for every code", () => {
    for (const [code, [message, help]] of Object.entries(errorTable)) {
      expect(code).toMatch(/^[a-z_]+$/);
      expect(message.length * help.length).toBeGreaterThan(0);
      expect(message, "texts end without a stop: it is added").not.toMatch(/\.$/);
    }
  });
});
