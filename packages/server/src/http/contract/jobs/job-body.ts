import type { EnqueueOptions, JobDefaults, RetryPolicy } from "pawl";
import type { ScheduledJobOptions, TaskDefinition } from "pawl/service";
import Type from "typebox";
import { Anything, as, closedObject, Duration, Instant, JobId, optional, QueueName, TaskName, TenantName, text } from "../schemas.js";

const Priority = as<NonNullable<EnqueueOptions["priority"]>>({
  type: ["integer", "string"],
  minimum: 0,
  maximum: 9,
  maxLength: 8,
  description: "0 to 9, or low (2), normal (5), high (7), critical (9)",
});
const Retry = as<RetryPolicy>({
  type: ["integer", "array", "object"],
  description: 'how many retries; their delays, such as ["1s", "1m"]; or { "kind": "exponential", … }',
});

/** A text or an object in one schema: what is wrong with either is said in one sentence. */
const Unique = as<NonNullable<EnqueueOptions["unique"]>>({
  ...closedObject({
    key: text(512, "a key"),
    for: optional(as<string | number>({ type: ["integer", "string"], maxLength: 32, description: "unstarted, unfinished, or a duration" })),
    onConflict: optional(Type.Union([Type.Literal("reject"), Type.Literal("existing"), Type.Literal("replace")])),
  }),
  type: ["string", "object"],
  minLength: 1,
  maxLength: 512,
  description:
    "one unfinished job of this tenant, task and key: the key as a text, or an object that says for how long, and what a second enqueue gets",
});

const Spread = as<NonNullable<EnqueueOptions["spread"]>>({
  ...Duration,
  type: ["integer", "string", "array"],
  items: Duration,
  minItems: 2,
  maxItems: 2,
  description: "jobs due at one instant are started evenly over this long, or from the first to the second of two durations after it",
});

/** An option that the library gets and a body here does not is one that callers elsewhere cannot use: it does not compile. */
type EveryOption<Option extends string> = Readonly<Record<Option, unknown>>;

const SHARED = {
  queue: optional(QueueName),
  priority: optional(Priority),
  retry: optional(Retry),
  timeout: optional(Duration),
  finishWithin: optional(Duration),
  startWithin: optional(Duration),
  maxCrashes: optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
  spread: optional(Spread),
} satisfies EveryOption<keyof JobDefaults>;

/** What the jobs of a task are unless they say otherwise. */
export const TASK_DEFAULTS = {
  ...SHARED,
  atMostOnce: optional(Type.Boolean()),
  limits: optional(as<readonly object[]>({ type: "array", maxItems: 8, items: { type: "object" }, description: "see docs/limits.md" })),
  needs: optional(as<object>({ type: "object", description: "what a worker must have to run it: capabilities and resources" })),
  breaker: optional(as<false | object>({ type: ["boolean", "object"], description: "when its breakers open; false: it has none" })),
} satisfies EveryOption<Exclude<keyof TaskDefinition, "inputSchema">>;

/** What a job is enqueued with, but for its time: schedules have that of their own. */
export const JOB_OPTIONS = {
  ...SHARED,
  tags: optional(Type.Array(text(128, "a label to find it by"), { maxItems: 20 })),
  unique: optional(Unique),
  limitKeys: optional(
    as<NonNullable<EnqueueOptions["limitKeys"]>>({
      type: "object",
      additionalProperties: { type: ["string", "number", "null"] },
      maxProperties: 8,
      description: "keys of the task's limits, by their names; null: not limited",
    }),
  ),
} satisfies EveryOption<keyof ScheduledJobOptions>;

export const ENQUEUE_OPTIONS = {
  ...JOB_OPTIONS,
  delay: optional(Duration),
  runAt: optional(Instant),
  tenant: optional(TenantName),
  debounce: optional(closedObject({ key: text(512, "a key"), wait: Duration, maxWait: optional(Duration) })),
  idempotencyKey: optional(text(256, "repeating an enqueue with its idempotency key answers with its first job, for a day")),
  dependsOn: optional(Type.Array(JobId, { maxItems: 1_000 })),
  onDependencyDeath: optional(Type.Union([Type.Literal("die"), Type.Literal("run"), Type.Literal("wait")])),
  trace: optional(
    closedObject(
      { traceparent: text(55, "version, trace, span and flags"), tracestate: optional(text(512, "what tracers add to it")) },
      "the trace it belongs to, as W3C Trace Context has it",
    ),
  ),
  // Transactions are of a process that has the database open.
} satisfies EveryOption<Exclude<keyof EnqueueOptions, "tx">>;

export const NewJob = closedObject({ task: TaskName, input: optional(Anything), ...ENQUEUE_OPTIONS }, "A job to enqueue.");
