import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type BreakerOptions, breakerRule } from "../limits/breaker-check.js";
import type { Needs } from "../limits/capacity.js";
import { checkNeeds } from "../limits/capacity-check.js";
import { checkLimits, type Limit } from "../limits/limit-options.js";
import type { Duration } from "../values/duration.js";
import { checkName } from "../values/name.js";
import { checkBoolean, checkFunction, checkKeys, checkObject, invalid } from "../values/option.js";
import type { Context } from "./context.js";
import type { RetryPolicy } from "./retry.js";
import { checkTaskUnique, type TaskUniqueOptions } from "./task-unique.js";

/** What can be set per queue, task and job; the nearest one wins. */
export interface JobDefaults {
  readonly queue?: string;
  /** 0–9, or low (2), normal (5), high (7), critical (9) */
  readonly priority?: PriorityOption;
  readonly retry?: RetryPolicy;
  readonly timeout?: Duration;
  /** over all attempts, from the due time */
  readonly finishWithin?: Duration;
  /** dead if not started this long after its due time */
  readonly startWithin?: Duration;
  readonly maxCrashes?: number;
  /** jobs due at one instant are started evenly over this long, or from `min` to `max` after it; see docs/backpressure.md */
  readonly spread?: Duration | readonly [min: Duration, max: Duration];
}
export type PriorityName = "low" | "normal" | "high" | "critical";
/** 0 to 9 (9 is most urgent), or a name for 2, 5, 7 or 9. */
export type PriorityOption = number | PriorityName;

export interface TaskOptions<Schema extends StandardSchemaV1 | undefined = undefined, In = unknown> extends JobDefaults {
  /** any Standard Schema; checked when a job is enqueued and again before it runs */
  readonly input?: Schema;
  /** run at most once: never retried, and dead (`interrupted`) if its worker vanishes */
  readonly atMostOnce?: boolean;
  /** on jobs of one key, over all workers: see docs/limits.md */
  readonly limits?: readonly Limit<In>[];
  /** one job per key that its code computes from the input; `unique` or `debounce` of a call wins */
  readonly unique?: TaskUniqueOptions<In>;
  /** what a worker must have to run it: see docs/capacity.md */
  readonly needs?: Needs;
  /** when its breakers open; false: it has none. See docs/breakers.md */
  readonly breaker?: false | BreakerOptions;
}

/** Named code a developer registers, with its defaults. `In` is what callers pass, `Parsed` what the handler gets. */
export interface Task<In = unknown, Out = unknown, Parsed = In> {
  readonly name: string;
  readonly options: TaskOptions<StandardSchemaV1 | undefined, never>;
  readonly schema: StandardSchemaV1<In, Parsed> | undefined;
  readonly handler: (input: Parsed, ctx: Context) => Out | Promise<Out>;
}

/** A task of any input and output, as registries hold it. */
// biome-ignore lint/suspicious/noExplicitAny: a handler's input is contravariant, so only `any` admits every task
export type AnyTask = Task<any, unknown, any>;

export type InputOf<T extends AnyTask> = T extends Task<infer In, unknown, infer _P> ? In : never;
export type OutputOf<T extends AnyTask> = T extends Task<infer _I, infer Out, infer _P> ? Out : never;

type TaskHandler<Input, Out> = (input: Input, ctx: Context) => Out | Promise<Out>;

export function task<Schema extends StandardSchemaV1, Out>(
  name: string,
  options: TaskOptions<Schema, StandardSchemaV1.InferInput<Schema>> & { readonly input: Schema },
  handler: TaskHandler<StandardSchemaV1.InferOutput<Schema>, Out>,
): Task<StandardSchemaV1.InferInput<Schema>, Awaited<Out>, StandardSchemaV1.InferOutput<Schema>>;
export function task<Input = unknown, Out = unknown>(
  name: string,
  options: TaskOptions<undefined, Input>,
  handler: TaskHandler<Input, Out>,
): Task<Input, Awaited<Out>>;
export function task<Input = unknown, Out = unknown>(name: string, handler: TaskHandler<Input, Out>): Task<Input, Awaited<Out>>;
export function task(
  name: string,
  second: TaskOptions<StandardSchemaV1 | undefined, never> | TaskHandler<unknown, unknown>,
  third?: TaskHandler<unknown, unknown>,
): Task {
  checkName("task", name);
  const options = typeof second === "function" ? {} : checkOptions(name, second);
  const handler = typeof second === "function" ? second : (third as TaskHandler<unknown, unknown>);
  checkFunction(`${name}.handler`, handler);
  return { name, options, schema: options.input, handler };
}

/** The names of what can be set per queue, task and job, for those who refuse misspelt ones. */
export const DEFAULT_NAMES = {
  queue: true,
  priority: true,
  retry: true,
  timeout: true,
  finishWithin: true,
  startWithin: true,
  maxCrashes: true,
  spread: true,
} satisfies Record<keyof JobDefaults, true>;

const TASK_KEYS: ReadonlySet<string> = new Set(
  Object.keys({
    ...DEFAULT_NAMES,
    input: true,
    atMostOnce: true,
    limits: true,
    unique: true,
    needs: true,
    breaker: true,
  } satisfies Record<keyof TaskOptions, true>),
);

/** What only code can be wrong about, found where the code is. The values of the defaults are checked with those of queues and jobs. */
function checkOptions<Options extends TaskOptions<StandardSchemaV1 | undefined, never>>(name: string, options: Options): Options {
  checkKeys(checkObject(`the options of ${name}`, options), TASK_KEYS, `${name}.`);
  const { input, limits, unique, atMostOnce, needs, breaker } = options;
  if (needs !== undefined) checkNeeds(`${name}.needs`, needs);
  breakerRule(`${name}.breaker`, breaker);
  if (limits !== undefined) checkLimits(name, limits);
  if (unique !== undefined) checkTaskUnique(`${name}.unique`, unique);
  if (atMostOnce !== undefined) checkBoolean(`${name}.atMostOnce`, atMostOnce);
  if (input !== undefined && typeof (input as Partial<StandardSchemaV1> | null)?.["~standard"]?.validate !== "function")
    throw invalid(`${name}.input`, "it is no Standard Schema, as zod, valibot or arktype make them");
  return options;
}
