import type { BreakerOptions } from "../limits/breaker-check.js";
import type { Needs } from "../limits/capacity.js";
import type { Limit } from "../limits/limit-options.js";
import type { JsonSchema } from "../values/json-schema.js";
import type { Priority, Spread } from "./job.js";
import type { PublishedRetry } from "./retry.js";

/**
 * What the jobs of a task are unless they say otherwise, as far as it must be known without its code: ms and numbers,
 * whatever way the code said it. How a job is run (retries, timeout) is read where it runs; it is here for workers in
 * other languages, whose outcomes are decided by whoever hosts them.
 */
export interface StoredDefaults {
  readonly queue?: string;
  readonly priority?: Priority;
  readonly finishWithin?: number;
  readonly startWithin?: number;
  readonly spread?: Spread;
  readonly maxCrashes?: number;
  readonly atMostOnce?: true;
  readonly limits?: readonly Limit<never>[];
  /** of the worker that runs it; known here so that it can be said why nobody does */
  readonly needs?: Needs;
  /** absent: the default, or a function, which only its code can answer */
  readonly retry?: PublishedRetry;
  readonly timeout?: number;
  readonly breaker?: false | BreakerOptions;
  /** of its input, where its schema can be said so */
  readonly inputSchema?: JsonSchema;
}

/** A task as the store knows it, for those who have its name and not its code. */
export interface TaskRecord {
  readonly name: string;
  readonly defaults: StoredDefaults;
}
