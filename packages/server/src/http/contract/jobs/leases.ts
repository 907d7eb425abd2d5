import type { JobId as OwnJobId, RetryPolicy } from "pawl";
import {
  BOUNDS,
  type LeaseId,
  type PulledIntents,
  type PulledLease,
  type PulledRecord,
  type PulledRenewal,
  type PulledResults,
  REPORTED_FAILURE_KINDS,
  type ReportedFailureKind,
} from "pawl/service";
import type { ConcurrencyOptions } from "pawl/worker";
import Type, { type Static } from "typebox";
import type { Policy } from "../policy.js";
import { type ProblemDetails, ProblemShape } from "../problem.js";
import { route } from "../route.js";
import {
  JobId as AnyJobId,
  Anything,
  as,
  closedObject,
  Duration,
  list,
  openObject,
  optional,
  QueueName,
  TaskName,
  TenantName,
  Time,
  text,
} from "../schemas.js";

/** The pull protocol: what a worker in any language speaks. docs/protocol.md says how it goes. */

const WORK: Policy = { action: "leases.write", scope: "tenant" };
export const MAX_LEASES = 1_000;
export const MAX_OUTCOMES = 1_000;
const MAX_SETTLE_BYTES = 8 * 1_048_576;
/** A value of the largest size with its envelope; a client may write more of it as escapes than it is stored with. */
const MAX_RECORD_BYTES = 2 * BOUNDS.recorded;

/** ms; longer than any handler runs, and than any note waits */
const Past = Type.Number({ minimum: 0, maximum: 30 * 86_400_000 });

const Worker = closedObject(
  {
    name: text(128, "for people; several workers may share it"),
    instance: Type.String({
      pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
      description: "a random UUID, another one every time it is started",
    }),
    leaseDuration: optional(as<number | string>({ ...Duration, description: "how long its leases last unless they are renewed; 15 s unless set" })),
  },
  "Who asks. The same in every call of one life of one worker.",
);
const LeaseNumber = as<LeaseId>({ type: "string", pattern: "^[0-9]{1,18}$", description: "the number of a lease" });
const JobId = as<OwnJobId>({ ...AnyJobId });
const Leases = Type.Array(LeaseNumber, { maxItems: MAX_LEASES });
const Priority = Type.Integer({ minimum: 0, maximum: 9 });
const Counts = as<Readonly<Record<string, number>>>({ type: "object", maxProperties: 100, additionalProperties: { type: "number" } });
/** A number, or an object with smaller numbers for some queues and tasks. */
const Concurrency = as<number | ConcurrencyOptions>({
  type: ["integer", "object"],
  minimum: 1,
  maximum: 100_000,
  properties: { total: { type: "integer", minimum: 1, maximum: 100_000 }, queues: Counts, tasks: Counts },
  additionalProperties: false,
  description: "handlers at a time, 10 unless set: a number, or `{ total, queues, tasks }` with smaller numbers for some queues and tasks",
});

/** Capabilities and resources: of a worker in `provides`, of a task in `needs`. */
const Capacity = closedObject({ capabilities: optional(Type.Array(text(128, "a capability"), { maxItems: 1_000 })), resources: optional(Counts) });

const Task = closedObject(
  {
    name: TaskName,
    retry: optional(as<number>({ type: ["integer", "array", "object"], description: "as with an enqueue" })),
    timeout: optional(Duration),
    atMostOnce: optional(Type.Boolean()),
    needs: optional(Capacity),
    breaker: optional(as<false>({ type: ["boolean", "object"] })),
  },
  "A task it has, and how its jobs are run there. What is left out is as the task was published, or the default.",
);

export const claim = route({
  id: "leases.claim",
  method: "POST",
  path: "/v1/leases/claim",
  summary: "Take jobs to run, waiting for the first of them",
  description:
    "A long poll: answers as soon as there is a job, or with no lease when `wait` is over. One at a time: another one takes its place. With `idempotencyKey`, " +
    "repeating it after a lost answer answers the same; a claim that is never heard of again runs out by itself.",
  policy: WORK,
  body: closedObject({
    worker: Worker,
    tasks: Type.Array(Task, { minItems: 1, maxItems: 1_000 }),
    limit: Type.Integer({ minimum: 1, maximum: 1_000, description: "jobs at most" }),
    freeSlots: optional(Type.Integer({ minimum: 0, maximum: 1_000, description: "how many of them it can start at once; all unless set" })),
    wait: optional(as<number | string>({ ...Duration, description: "how long to wait; not at all unless set, 60 s at most" })),
    idempotencyKey: optional(text(256, "an id of this claim")),
    concurrency: optional(Concurrency),
    queues: optional(Type.Array(QueueName, { minItems: 1, maxItems: 1_000, description: "all unless set" })),
    priorities: optional(Type.Array(Priority, { maxItems: 10 })),
    tenants: optional(Type.Array(TenantName, { maxItems: 1_000 })),
    provides: optional(Capacity),
    reserve: optional(
      Type.Array(closedObject({ priority: optional(Priority), tenant: optional(TenantName), slots: Type.Integer({ minimum: 1 }) }), {
        maxItems: 100,
      }),
    ),
    heldJobs: optional(
      Type.Array(
        // Names as jobs have them that were enqueued beside the store: what it was given it must be able to name.
        closedObject({
          task: text(128, "the task of the lane"),
          queue: text(128, "the queue of the lane"),
          priority: Priority,
          tenant: Type.String({ minLength: 1, maxLength: 128, description: "the tenant of the lane", "x-names": "tenant" }),
          count: Type.Integer({ minimum: 0, maximum: 100_000 }),
        }),
        {
          maxItems: 10_000,
          description:
            "what it has in hand, 100,000 jobs at most; to be sent by workers with resources, reservations or a `concurrency` of queues or tasks, if the service has several " +
            "processes",
        },
      ),
    ),
  }),
  status: 200,
  answer: {
    means: "Leases with jobs, or none.",
    body: openObject<{ leases: readonly PulledLease[] }>({
      leases: list(
        Type.Object({
          lease: Type.String(),
          beganAfter: Type.Number({ description: "ms after the request arrived at which it began; less than nothing, if it was waiting" }),
          now: as<string>({ ...Time, description: "the store's clock" }),
          duration: Type.Number({ description: "ms within which it must be renewed" }),
          suspect: Type.Boolean({ description: "its job took workers down before: run it alone" }),
          jobs: list(
            Type.Object({
              id: JobId,
              task: Type.String(),
              queue: Type.String(),
              priority: Type.Integer(),
              tenant: Type.String(),
              attempt: Type.Integer(),
              input: Anything,
              undecryptable: optional(Type.Boolean()),
              timeout: Type.Integer({ description: "ms after which its handler should be stopped, and the job settled as failed" }),
              dueAt: Time,
              crashes: Type.Integer(),
              options: optional(Type.Object({})),
            }),
          ),
        }),
      ),
    }),
  },
  example: {
    worker: { name: "resizer", instance: "6f1c1f5e-0f5a-4b5e-9c58-0a3a4c1b8a11" },
    tasks: [{ name: "resize", retry: 5, timeout: "1m" }],
    limit: 4,
    wait: "20s",
  },
});

const Cancelled = list(JobId, "jobs that somebody asked to be cancelled: stop them, and settle them as cancelled");

export const renew = route({
  id: "leases.renew",
  method: "POST",
  path: "/v1/leases/renew",
  summary: "Keep leases, and hear of cancellations",
  description: "At least every third of their duration. Jobs of a lost lease are somebody else's: stop them, and do not settle them.",
  policy: WORK,
  body: closedObject({ worker: Worker, leases: Leases }),
  status: 200,
  answer: {
    means: "Which of them are kept.",
    body: openObject<PulledRenewal>({
      held: list(LeaseNumber),
      lost: list(LeaseNumber),
      cancel: Cancelled,
    }),
  },
});

export const intents = route({
  id: "leases.intents",
  method: "POST",
  path: "/v1/leases/intents",
  summary: "Hear of cancellations between renewals",
  policy: WORK,
  body: closedObject({ worker: Worker, leases: Leases }),
  status: 200,
  answer: { means: "What was asked.", body: openObject<PulledIntents>({ cancel: Cancelled }) },
});

const NOTE = {
  level: as<"debug" | "info" | "warn" | "error" | "progress">({ enum: ["debug", "info", "warn", "error", "progress"] }),
  message: optional(Type.String({ description: `of a line; after ${BOUNDS.logMessage} characters it is cut, and says so` })),
  data: optional(
    as<unknown>({ description: `any JSON; of a line it is cut after ${BOUNDS.logData} bytes, of progress it is refused over ${BOUNDS.progress}` }),
  ),
  ago: optional(Past),
};
const Cause = closedObject({ name: optional(Type.String()), message: Type.String(), stack: optional(Type.String()) });

export const OutcomeBody = closedObject({
  lease: LeaseNumber,
  job: JobId,
  outcome: as<"succeeded" | "failed" | "snoozed" | "released" | "cancelled">({ enum: ["succeeded", "failed", "snoozed", "released", "cancelled"] }),
  output: optional(Anything),
  failure: optional(
    closedObject({
      kind: optional(as<ReportedFailureKind>({ enum: REPORTED_FAILURE_KINDS })),
      name: optional(Type.String()),
      message: Type.String(),
      stack: optional(Type.String()),
      code: optional(Type.String()),
      causes: optional(Type.Array(Cause, { maxItems: 10 })),
    }),
  ),
  retryable: optional(Type.Boolean({ description: "of failed: false if no retry will help" })),
  retryAfter: optional(as<number | string>({ ...Duration, description: "of failed: how long to wait, whatever its retry policy says" })),
  overridesPolicy: optional(Type.Boolean({ description: "with retryAfter: true if it is to be tried again even where its retry policy would stop" })),
  limit: optional(
    as<string | false>({ type: ["string", "boolean"], description: "with retryAfter: the limit whose key rests as long; false: none" }),
  ),
  delay: optional(as<number | string>({ ...Duration, description: "of snoozed: when to try again" })),
  duration: optional(as<number>({ ...Past, description: "ms that its handler ran" })),
  retry: optional(
    as<RetryPolicy>({ type: ["integer", "array", "object"], description: "of its task, as with the claim: for a process that did not hear that" }),
  ),
  atMostOnce: optional(Type.Boolean({ description: "of its task, as with the claim" })),
  notes: optional(Type.Array(closedObject(NOTE), { maxItems: 1_000 })),
});

/** Each is checked by itself: what is wrong with one is no reason to refuse the others. */
const OutcomeOrAny = as<Static<typeof OutcomeBody>>({ anyOf: [OutcomeBody, { type: "object", description: "is refused, and stops no other" }] });

export const settle = route({
  id: "leases.settle",
  method: "POST",
  path: "/v1/leases/settle",
  summary: "Say how attempts ended",
  description:
    "Retry or dead is decided here, by the task's retry policy. Repeating it after a lost answer is safe and answers the same. `stale`: the lease was " +
    "lost, and nothing was changed. `refused`: what was told of it is malformed, as `refusals` says; the others are settled all the same. To give a job back, settle it as `released`: that spends no attempt.",
  policy: WORK,
  body: closedObject({ worker: Worker, outcomes: Type.Array(OutcomeOrAny, { minItems: 1, maxItems: MAX_OUTCOMES }) }),
  status: 200,
  answer: {
    means: "An answer for each, in order.",
    body: openObject<PulledResults & { readonly refusals?: readonly ProblemDetails[] }>({
      results: list(Type.String()),
      refusals: optional(list(ProblemShape, "why some were refused, with pointers to what is wrong")),
    }),
  },
  limits: { body: MAX_SETTLE_BYTES },
  example: {
    worker: { name: "resizer", instance: "6f1c1f5e-0f5a-4b5e-9c58-0a3a4c1b8a11" },
    outcomes: [{ lease: "17", job: "0197a0c0-7d1e-7000-8000-000000000000", outcome: "succeeded", output: { width: 800 } }],
  },
});

export const report = route({
  id: "leases.report",
  method: "POST",
  path: "/v1/leases/reports",
  summary: "Log lines and progress of jobs that run",
  policy: WORK,
  body: closedObject({
    worker: Worker,
    notes: Type.Array(closedObject({ lease: LeaseNumber, job: JobId, ...NOTE }), { minItems: 1, maxItems: 1_000 }),
  }),
  status: 204,
  answer: { means: "They are kept; those of a lost lease are not." },
  limits: { body: MAX_SETTLE_BYTES },
});

const ONE = { worker: Worker, lease: LeaseNumber, job: JobId, name: text(512, "the name of the effect") };

export const recall = route({
  id: "leases.recall",
  method: "POST",
  path: "/v1/leases/recall",
  summary: "What an earlier attempt recorded of an effect",
  policy: WORK,
  body: closedObject(ONE),
  status: 200,
  answer: {
    means: "The record, if there is one.",
    body: openObject<PulledRecord>({ found: Type.Boolean(), value: optional(Anything) }),
  },
});

export const record = route({
  id: "leases.record",
  method: "POST",
  path: "/v1/leases/record",
  summary: "Record what an effect returned, so that no later attempt runs it again",
  policy: WORK,
  body: closedObject({ ...ONE, value: Anything, ttl: optional(Duration) }),
  status: 200,
  answer: { means: "What is recorded: the first one wins.", body: openObject<{ value: unknown }>({ value: Anything }) },
  limits: { body: MAX_RECORD_BYTES },
});

export const retire = route({
  id: "leases.retire",
  method: "POST",
  path: "/v1/leases/retire",
  summary: "Say that the worker stops",
  description: "Settle what it holds first. One that vanishes without a word is missed after 45 s.",
  policy: WORK,
  body: closedObject({ worker: Worker }),
  status: 204,
  answer: { means: "It is not counted among the workers any more." },
});
