import type { EnqueueOptions, RetryPolicy } from "pawl";
import { OPTION_ROWS, type OptionKind, type OptionName, type OptionRow, type TaskDefinition } from "pawl/service";
import Type, { type TProperties, type TSchema } from "typebox";
import { Anything, as, closedObject, Duration, Instant, JobId, optional, QueueName, TaskName, TenantName, text } from "../schemas.js";

/** A text or an object in one schema: what is wrong with either is said in one sentence. */
const Unique = {
  ...closedObject({
    key: text(512, "a key"),
    for: optional(as<string | number>({ type: ["integer", "string"], maxLength: 32, description: "unstarted, unfinished, or a duration" })),
    onConflict: optional(Type.Union([Type.Literal("reject"), Type.Literal("existing"), Type.Literal("replace")])),
  }),
  type: ["string", "object"],
  minLength: 1,
  maxLength: 512,
};

/** The schema in a body, by what an option holds. A transaction is of a process that has the database open. */
const SCHEMA_OF_KIND: Readonly<Record<Exclude<OptionKind, "transaction">, object>> = {
  queue: QueueName,
  tenant: TenantName,
  priority: { type: ["integer", "string"], minimum: 0, maximum: 9, maxLength: 8 },
  retry: { type: ["integer", "array", "object"] },
  duration: Duration,
  spread: { ...Duration, type: ["integer", "string", "array"], items: Duration, minItems: 2, maxItems: 2 },
  count: { type: "integer", minimum: 1, maximum: 1_000 },
  instant: Instant,
  label: text(128, "a label to find it by"),
  labels: Type.Array(text(128, "a label to find it by"), { maxItems: 20 }),
  unique: Unique,
  debounce: closedObject({ key: text(512, "a key"), wait: Duration, maxWait: optional(Duration) }),
  limit_keys: { type: "object", additionalProperties: { type: ["string", "number", "null"] }, maxProperties: 8 },
  key: text(256, "a key"),
  jobs: Type.Array(JobId, { maxItems: 1_000 }),
  death_policy: Type.Union([Type.Literal("die"), Type.Literal("run"), Type.Literal("wait")]),
  trace: closedObject({
    traceparent: text(55, "version, trace, span and flags"),
    tracestate: optional(text(512, "what tracers add to it")),
  }),
};

/** The fields of the options that fit, each with what it does and an example. */
function fieldsOf(fits: (row: OptionRow) => boolean): TProperties {
  return Object.fromEntries(
    OPTION_ROWS.flatMap(([name, row]) => (row.kind === "transaction" || !fits(row) ? [] : [[name, fieldOf({ ...row, kind: row.kind })] as const])),
  );
}

function fieldOf({ kind, does, example, default: byDefault }: OptionRow & { readonly kind: Exclude<OptionKind, "transaction"> }): TSchema {
  return optional(
    as<unknown>({
      ...SCHEMA_OF_KIND[kind],
      description: byDefault === undefined ? does : `${does}; ${plain(byDefault)} unless set`,
      examples: [example],
    }),
  );
}

/** Docs mark code, descriptions do not. */
function plain(text: string): string {
  return text.replaceAll("`", "");
}

const ofLevel = (level: "task" | "schedule") => fieldsOf(({ alsoOf }) => alsoOf?.includes(level) === true);

/** What the jobs of a task are unless they say otherwise. */
export const TASK_DEFAULTS = {
  ...ofLevel("task"),
  ...({
    atMostOnce: optional(Type.Boolean()),
    limits: optional(as<readonly object[]>({ type: "array", maxItems: 8, items: { type: "object" }, description: "see docs/limits.md" })),
    needs: optional(as<object>({ type: "object", description: "what a worker must have to run it: capabilities and resources" })),
    breaker: optional(as<false | object>({ type: ["boolean", "object"], description: "when its breakers open; false: it has none" })),
  } satisfies Readonly<Record<Exclude<keyof TaskDefinition, "inputSchema" | OptionName>, unknown>>),
};

/** What a job is enqueued with, but for its time: schedules have that of their own. */
export const JOB_OPTIONS = ofLevel("schedule");

export const ENQUEUE_OPTIONS = fieldsOf(() => true);

/** The options as JSON has them. */
export interface OptionsInJson extends Omit<EnqueueOptions, "tx" | "retry" | "dependsOn" | "runAt"> {
  readonly retry?: RetryPolicy;
  readonly dependsOn?: readonly string[];
  readonly runAt?: number | string;
}

export interface JobInJson extends OptionsInJson {
  readonly task: string;
  readonly input?: unknown;
}

export const NewJob = as<JobInJson>(closedObject({ task: TaskName, input: optional(Anything), ...ENQUEUE_OPTIONS }, "A job to enqueue."));
