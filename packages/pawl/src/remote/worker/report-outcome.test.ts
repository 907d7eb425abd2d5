import { expect, test } from "vitest";
import type { JobId, LeaseId } from "../../core/jobs/id.js";
import { attemptsSoFar, decide, type Outcome, type Patch } from "../../core/jobs/outcome.js";
import { outcomeOf, type ReportedOutcome } from "../../worker/remote/reported-outcome.js";
import { pulledOutcome } from "./report-outcome.js";

const lane = { queue: "default", priority: 5, tenant: "acme", task: "mail" } as const;
const options = { finishWithin: 60_000, limits: [{ limit: "api", key: "k", rule: { concurrency: 1 } }] } as const;
const job = { attempts: 0, crashes: 0, dueAt: 0 };
const BROKE = { kind: "error", name: "TypeError", message: "no" } as const;

const here = (outcome: Outcome, now: number): Patch => decide(attemptsSoFar(job, options, now), outcome, 9, () => 0);
/** What the service decides of what it is told. */
const there = (patch: Patch, now: number): Patch => {
  const told = pulledOutcome({ lease: "1" as LeaseId, job: "j" as JobId, lane, patch, startedAt: 0, finishedAt: 5 }) as unknown;
  return decide(attemptsSoFar(job, options, now), outcomeOf(told as ReportedOutcome, options.limits), 9, () => 0);
};

test("a job that dies of its deadline between attempts dies of it at the service too, and its attempt keeps what it failed with", () => {
  const patch = here({ kind: "failed", failure: BROKE, retryable: true }, 59_500);
  expect(patch).toMatchObject({ next: "dead", failure: BROKE, diedOf: { kind: "deadline" } });
  expect(there(patch, 59_600)).toMatchObject({ next: "dead", failure: BROKE, diedOf: { kind: "deadline" } });
});

test("the key that is to rest does so no longer than was asked for", () => {
  const patch = here({ kind: "failed", failure: BROKE, retryable: true, retryAfter: 5_000, pauses: { limit: "api", key: "k" } }, 59_500);
  expect(there(patch, 59_600)).toMatchObject({ next: "dead", diedOf: { kind: "deadline" }, pauses: { limit: "api", key: "k", for: 5_000 } });
});
