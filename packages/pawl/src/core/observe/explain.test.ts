import { describe, expect, test } from "vitest";
import { undecryptableFailure } from "../access/encrypted-value.js";
import type { JobId } from "../jobs/id.js";
import type { JobRecord } from "../jobs/job.js";
import { explain, type JobSituation, type Reason } from "./explain.js";
import { inWords, reasonInWords } from "./explain-text.js";

const NOW = Date.UTC(2030, 0, 1);
const ID = "01890000-0000-7000-8000-00000000000a" as JobId;
const OTHER = "01890000-0000-7000-8000-00000000000b" as JobId;
const FAILURE = { kind: "error", name: "TypeError", message: "no such thing" } as const;

const FULL = { limit: "account", key: "7", for: "concurrency", held: 5, most: 5 } as const;
const TURN = { limit: "account", key: "7", for: "serial", held: 1, most: 1 } as const;

function situation(job: Partial<JobRecord> = {}, more: Partial<JobSituation> = {}): JobSituation {
  const lane = { queue: "mail", priority: 5, tenant: "acme", task: "send" } as const;
  return {
    now: NOW,
    job: { id: ID, lane, state: "ready", input: "null", options: {}, createdAt: NOW, dueAt: NOW, attempts: 0, crashes: 0, ...job },
    parents: { on: [], count: 0 },
    suspect: false,
    inLane: { ahead: 0, more: false },
    paused: [],
    lacks: [],
    policyLimits: [],
    ...more,
  };
}

const kinds = (given: JobSituation) => explain(given).reasons.map(({ kind }) => kind);

/** what is the case → the one reason that is told besides its position in the lane, in words, and when it starts */
const CASES: readonly [string, JobSituation, Reason, string, number | undefined][] = [
  [
    "it has succeeded",
    situation({ state: "succeeded", finishedAt: NOW - 1_000 }),
    { kind: "finished", state: "succeeded", at: NOW - 1_000 },
    "it is succeeded since 2029-12-31T23:59:59.000Z",
    undefined,
  ],
  [
    "it is dead",
    situation({ state: "dead", failure: FAILURE }),
    { kind: "finished", state: "dead", failure: FAILURE },
    "it is dead (TypeError: no such thing)",
    undefined,
  ],
  [
    "it runs",
    situation({ state: "running", intent: "cancel" }, { holder: { worker: "ana", since: NOW - 5_000, until: NOW + 10_000 } }),
    { kind: "running", worker: "ana", since: NOW - 5_000, until: NOW + 10_000, intent: "cancel" },
    "it is running at ana since 2029-12-31T23:59:55.000Z; its worker has been asked to cancel it",
    undefined,
  ],
  ["it is paused itself", situation({ state: "parked", parkedFor: "paused" }), { kind: "paused", what: "job", name: ID }, "it is paused", undefined],
  [
    "it is to be paused when it is unblocked",
    situation({ state: "blocked", intent: "pause" }, { parents: { on: [], count: 0 } }),
    { kind: "paused", what: "job", name: ID },
    "it is paused",
    undefined,
  ],
  ...(["queue", "task", "tenant"] as const).map((kind): (typeof CASES)[number] => [
    `its ${kind} is paused`,
    situation({}, { paused: [{ kind, name: "x" }] }),
    { kind: "paused", what: kind, name: "x" },
    `its ${kind} x is paused`,
    undefined,
  ]),
  [
    "it waits for other jobs",
    situation({ state: "blocked" }, { parents: { on: [{ job: OTHER, state: "running" }], count: 3 } }),
    { kind: "blocked", on: [{ job: OTHER, state: "running" }], count: 3 },
    `it waits for 3 other jobs: ${OTHER} (running) and 2 more`,
    undefined,
  ],
  [
    "all slots of its key are taken",
    situation({ state: "parked", parkedFor: "concurrency" }, { limitKey: { limit: "account", key: "7", for: "concurrency", held: 5, most: 5 } }),
    { kind: "limit_key", limit: "account", key: "7", for: "concurrency", held: 5, most: 5 },
    "key 7 of limit account has 5 of its 5 slots taken",
    undefined,
  ],
  [
    "it is not its turn in a serial key",
    situation({ state: "parked", parkedFor: "serial" }, { limitKey: { limit: "account", key: "7", for: "serial", held: 1, most: 1 } }),
    { kind: "limit_key", limit: "account", key: "7", for: "serial", held: 1, most: 1 },
    "key 7 of limit account runs one job at a time, and it is not its turn",
    undefined,
  ],
  [
    "others hold the slots of its key",
    situation({ state: "parked", parkedFor: "concurrency" }, { limitKey: { ...FULL, holders: [{ job: OTHER, state: "running" }] } }),
    { kind: "limit_key", ...FULL, holders: [{ job: OTHER, state: "running" }] },
    `key 7 of limit account has 5 of its 5 slots taken, by ${OTHER} (running) and 4 more`,
    undefined,
  ],
  [
    "another has the turn of a serial key",
    situation({ state: "parked", parkedFor: "serial" }, { limitKey: { ...TURN, holders: [{ job: OTHER, state: "scheduled" }] } }),
    { kind: "limit_key", ...TURN, holders: [{ job: OTHER, state: "scheduled" }] },
    `key 7 of limit account runs one job at a time, and it is the turn of ${OTHER} (scheduled)`,
    undefined,
  ],
  [
    "its key has no token",
    situation({ state: "parked", parkedFor: "rate" }, { limitKey: { limit: "api", key: "eu", for: "rate", until: NOW + 3_000 } }),
    { kind: "limit_key", limit: "api", key: "eu", for: "rate", until: NOW + 3_000 },
    "key eu of limit api has too few tokens for it; they are there in 3 s, at 2030-01-01T00:00:03.000Z",
    NOW + 3_000,
  ],
  [
    "its key is paused",
    situation({ state: "parked", parkedFor: "key_paused" }, { limitKey: { limit: "api", key: "eu", for: "key_paused", until: NOW + 150_000 } }),
    { kind: "limit_key", limit: "api", key: "eu", for: "key_paused", until: NOW + 150_000 },
    "key eu of limit api is paused, as a handler was told to come later (RetryAfter), and goes on in 3 min, at 2030-01-01T00:02:30.000Z",
    NOW + 150_000,
  ],
  [
    "it is not due yet",
    situation({ state: "scheduled", runAt: NOW + 7_200_000 }),
    { kind: "due", at: NOW + 7_200_000 },
    "it is due in 2 h, at 2030-01-01T02:00:00.000Z",
    NOW + 7_200_000,
  ],
  [
    "an attempt failed and the next is to come",
    situation({ state: "scheduled", runAt: NOW + 500, attempts: 1, failure: FAILURE }),
    { kind: "retrying", at: NOW + 500, attempts: 1, failure: FAILURE },
    "1 attempt failed (TypeError: no such thing); the next is due in 500 ms, at 2030-01-01T00:00:00.500Z",
    NOW + 500,
  ],
  [
    "a worker had it that lacks the key of its input",
    situation({ state: "scheduled", runAt: NOW + 30_000, failure: undecryptableFailure("locked") }),
    { kind: "undecryptable", at: NOW + 30_000 },
    "its input is encrypted, and the worker that had it last has no master key for it; it is offered again in 30 s, at 2030-01-01T00:00:30.000Z",
    undefined,
  ],
  [
    "it is offered again after that",
    situation({ failure: undecryptableFailure("locked") }),
    { kind: "undecryptable" },
    "its input is encrypted, and the worker that had it last has no master key for it",
    undefined,
  ],
  [
    "no worker has its tag",
    situation({}, { lacks: [{ kind: "capability", capability: "gpu" }] }),
    { kind: "unserved", lacks: [{ kind: "capability", capability: "gpu" }] },
    "no live worker that has its task has the capability gpu",
    undefined,
  ],
  [
    "its breaker is open",
    situation({}, { breaker: { until: NOW + 60_000 } }),
    { kind: "breaker_open", task: "send", tenant: "acme", until: NOW + 60_000 },
    "the breaker of task send for tenant acme is open; one job may try in 60 s, at 2030-01-01T00:01:00.000Z",
    NOW + 60_000,
  ],
  [
    "its breaker was opened by hand",
    situation({}, { breaker: {} }),
    { kind: "breaker_open", task: "send", tenant: "acme" },
    "the breaker of task send for tenant acme is open; somebody opened it by hand",
    undefined,
  ],
  [
    "as many run as may",
    situation({}, { policyLimits: [{ what: "queue", name: "mail", limit: "concurrency", most: 10, held: 10 }], startRate: 0.01 }),
    { kind: "policy_limit", what: "queue", name: "mail", limit: "concurrency", most: 10, held: 10 },
    "the queue mail may run 10 at a time, and 10 are",
    NOW + 100,
  ],
  [
    "as many were started as may be",
    situation({}, { policyLimits: [{ what: "tenant", name: "acme", limit: "rate", most: 10, until: NOW + 250 }] }),
    { kind: "policy_limit", what: "tenant", name: "acme", limit: "rate", most: 10, until: NOW + 250 },
    "the tenant acme has started as many as its rate allows; the next may start in 250 ms, at 2030-01-01T00:00:00.250Z",
    NOW + 250,
  ],
  [
    "it is a suspect",
    situation({ crashes: 2 }, { suspect: true }),
    { kind: "suspect", crashes: 2 },
    "2 workers vanished with it, so it waits for one that can run it alone",
    undefined,
  ],
  [
    "others are before it",
    situation({}, { inLane: { ahead: 500, more: false }, startRate: 0.1 }),
    { kind: "queued_behind", ahead: 500 },
    "500 jobs are before it in its lane",
    NOW + 5_000,
  ],
  [
    "very many are before it",
    situation({}, { inLane: { ahead: 10_000, more: true }, startRate: 0.1 }),
    { kind: "queued_behind", ahead: 10_000, more: true },
    "at least 10000 jobs are before it in its lane",
    undefined,
  ],
  [
    "all slots are taken",
    situation(
      {},
      { ableWorkers: { workers: 2, shut: 0, slots: 8, free: 0, oldest: NOW - 300_000, ends: [{ at: NOW + 5_000, slots: 8 }], took: 9_000 } },
    ),
    { kind: "full", slots: 8, workers: 2, since: NOW - 300_000 },
    "all 8 slots of 2 workers are taken; the oldest handler has been running since 2029-12-31T23:55:00.000Z, for 5 min",
    NOW + 5_000,
  ],
  [
    "the one slot is taken, by what nobody knows the end of",
    situation({}, { ableWorkers: { workers: 1, shut: 0, slots: 1, free: 0, ends: [{ at: null, slots: 1 }] } }),
    { kind: "full", slots: 1, workers: 1 },
    "the one slot of 1 worker is taken",
    undefined,
  ],
  [
    "all slots are taken, and it is a tenant that asks",
    situation(
      {},
      { discreet: true, ableWorkers: { workers: 2, shut: 0, slots: 8, free: 0, oldest: NOW, ends: [{ at: NOW + 5_000, slots: 8 }], took: 9_000 } },
    ),
    { kind: "full" },
    "all slots of the workers that can run it are taken",
    NOW + 5_000,
  ],
  [
    "no more of its kind may start at the workers that can run it",
    situation({}, { startRate: 0.001, ableWorkers: { workers: 0, shut: 2, slots: 0, free: 0, oldest: NOW - 5_000, ends: [] } }),
    { kind: "full", slots: 0, workers: 0, shut: 2, since: NOW - 5_000 },
    "2 workers that can run it have no room for one more of its kind (by the slots of its queue or task, or by what it needs)",
    NOW + 1_000,
  ],
  ["nothing is in its way", situation(), { kind: "queued_behind", ahead: 0 }, "it is next in its lane", NOW],
];

describe("a job is explained when", () => {
  test.each(CASES)("%s", (_, given, reason, words, start) => {
    const explained = explain(given);
    expect(explained.reasons[0]).toEqual(reason);
    expect(explained.reasons.filter(({ kind }) => kind !== "queued_behind" && kind !== reason.kind && kind !== "blocked")).toEqual([]);
    expect(reasonInWords(reason, NOW)).toBe(words);
    expect(explained.start).toBe(start);
  });
});

describe("several reasons", () => {
  test("are all told, what does not pass by itself first", () => {
    const all = situation(
      { state: "scheduled", runAt: NOW + 1_000, crashes: 2 },
      {
        paused: [{ kind: "queue", name: "mail" }],
        lacks: [{ kind: "worker" }],
        breaker: { until: NOW + 5 },
        policyLimits: [{ what: "queue", name: "mail", limit: "concurrency", most: 1 }],
        inLane: { ahead: 3, more: false },
      },
    );
    expect(kinds(all)).toEqual(["paused", "due", "unserved", "breaker_open", "policy_limit", "queued_behind"]);
    expect(explain(all).start).toBeUndefined();
  });

  test("start with the latest of their times", () => {
    const later = situation({ state: "scheduled", runAt: NOW + 60_000 }, { inLane: { ahead: 100, more: false }, startRate: 0.001 });
    expect(explain(later).start).toBe(NOW + 100_000);
    expect(explain({ ...later, startRate: 1 }).start).toBe(NOW + 60_000);
    // Nothing is known of how fast the others go: they may be gone when it is due.
    const { startRate: _, ...unknown } = later;
    expect(explain(unknown).start).toBe(NOW + 60_000);
    expect(explain({ ...unknown, job: { ...unknown.job, state: "ready" } }).start).toBeUndefined();
  });

  test("give no time behind an open breaker: only the first of the lane may try", () => {
    const behind = situation({}, { breaker: { until: NOW + 60_000 }, inLane: { ahead: 30, more: false }, startRate: 1 });
    expect(explain(behind).start).toBeUndefined();
    expect(explain({ ...behind, inLane: { ahead: 0, more: false } }).start).toBe(NOW + 60_000);
  });

  test("are not told of a job that is finished or runs, whatever its surroundings", () => {
    for (const state of ["succeeded", "dead", "cancelled", "running"] as const)
      expect(explain(situation({ state }, { paused: [{ kind: "queue", name: "mail" }], lacks: [{ kind: "worker" }] })).reasons).toHaveLength(1);
  });

  test("make a text", () => {
    const given = situation({}, { paused: [{ kind: "queue", name: "mail" }], inLane: { ahead: 1, more: false } });
    expect(inWords(explain(given), NOW)).toBe("Its queue mail is paused. 1 job is before it in its lane.");
    expect(inWords(explain(situation()), NOW)).toBe("It is next in its lane. It should start at once.");
    const behind = situation({}, { inLane: { ahead: 90, more: false }, startRate: 0.001 });
    expect(inWords(explain(behind), NOW)).toBe("90 jobs are before it in its lane. It should start in 90 s, at 2030-01-01T00:01:30.000Z.");
  });
});

describe("a spread", () => {
  test("is told as part of the due time", () => {
    const [reason] = explain(situation({ state: "scheduled", runAt: NOW + 60_000, dueAt: NOW + 60_000, options: { spread: 60_000 } })).reasons;
    expect(reason).toMatchObject({ kind: "due", at: NOW + 60_000, spreadBy: expect.any(Number) });
    expect(reasonInWords(reason as Reason, NOW)).toMatch(/^it is due in 60 s, at .*, \d+ s of that by its spread$/);
    // A snooze has a time of its own.
    expect(explain(situation({ state: "scheduled", runAt: NOW + 60_000, options: { spread: 60_000 } })).reasons).toEqual([
      { kind: "due", at: NOW + 60_000 },
    ]);
  });
});
