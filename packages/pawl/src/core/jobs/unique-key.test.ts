import { describe, expect, it } from "vitest";
import type { JobId } from "./id.js";
import { isFinished, JOB_STATES } from "./job.js";
import { judgeKey, stillHolds, type UniqueKeyHolder, type UniqueRule } from "./unique-key.js";

const holder = (more: Partial<UniqueKeyHolder>): UniqueKeyHolder => ({
  job: "j" as JobId,
  hold: "unfinished",
  state: "ready",
  started: false,
  remaining: 0,
  ...more,
});
const rule = (onConflict: UniqueRule["onConflict"]): UniqueRule => ({ key: "k", hold: "unfinished", onConflict });

describe("a key", () => {
  it("held while pending is held until the first start or the end", () => {
    for (const state of JOB_STATES) {
      expect(stillHolds(holder({ hold: "unstarted", state, started: false })), state).toBe(!isFinished(state));
      expect(stillHolds(holder({ hold: "unstarted", state, started: true })), state).toBe(false);
    }
  });

  it("held while unfinished is held until the end, started or not", () => {
    for (const state of JOB_STATES)
      for (const started of [true, false]) expect(stillHolds(holder({ state, started })), state).toBe(!isFinished(state));
  });

  it("held for a period is held until it is over, whatever becomes of the job", () => {
    for (const state of JOB_STATES) {
      expect(stillHolds(holder({ hold: 5, state, remaining: 1 })), state).toBe(true);
      expect(stillHolds(holder({ hold: 5, state, remaining: 0 })), state).toBe(false);
    }
  });

  it("that is not held is free, whatever the newcomer wants", () => {
    for (const onConflict of ["reject", "existing", "replace"] as const) {
      expect(judgeKey(holder({ state: "dead" }), rule(onConflict))).toEqual({ kind: "free" });
    }
  });

  it("that is held gives the newcomer what it asked for", () => {
    for (const state of JOB_STATES) {
      const held = holder({ hold: 5, remaining: 1, state });
      expect(judgeKey(held, rule("reject")), state).toEqual({ kind: "rejected" });
      expect(judgeKey(held, rule("existing")), state).toEqual({ kind: "existing" });
      const replaced = isFinished(state) ? "free" : state === "running" ? "rejected" : "replace";
      expect(judgeKey(held, rule("replace")), state).toEqual({ kind: replaced });
    }
  });
});
