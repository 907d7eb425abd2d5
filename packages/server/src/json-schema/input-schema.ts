import { createHash } from "node:crypto";
import type { PawlError } from "pawl";
import { type CheckOptions, type JsonSchema, pawlError, type SchemaCompiler } from "pawl/service";
import { CheckStopped } from "./check-run.js";
import { CheckThreads, TooManyChecks } from "./check-threads.js";
import { CompiledSchema, type Verdict } from "./compile.js";
import { checkIsSchema } from "./metaschema.js";
import { checkText, SchemaTooCostly } from "./schema-cost.js";

/** Schemas of others: what they cost does not grow with how many there are. */
const MAX_CACHED_SCHEMAS = 500;
/** Steps that are taken at once, about 1 ms of them; and in one turn of the event loop, so that a batch holds nobody up either. */
const MAX_INLINE_STEPS = 25_000;
const MAX_STEPS_PER_TURN = 100_000;
/** Of a turn, for one caller: others find some left. */
const MAX_STEPS_PER_CALLER = 60_000;
/** callers that are remembered for a schema */
const MAX_REMEMBERED_CALLERS = 1_000;
/** ms */
const RETRY_AFTER_MS = 1_000;

interface CachedSchema {
  readonly key: string;
  readonly compiled: CompiledSchema;
  /** callers whose last input was none to check at once: their next one is not tried */
  readonly costlyCallers: Set<string>;
}

type SchemaResult = { readonly value: unknown } | { readonly issues: NonNullable<Verdict["issues"]> };

/**
 * Turns the JSON Schema of a task's input into what the library checks inputs with. Throws if it is no schema. Inputs are checked at
 * once as long as that takes a few steps; others, from the start again, in a thread.
 */
export function schemaCompiler(threads: Pick<CheckThreads, "check"> = new CheckThreads()): SchemaCompiler {
  const cache = new Map<string, CachedSchema>();
  const turnBudget = new TurnBudget();
  return (schema, task) => {
    const text = JSON.stringify(schema);
    const own = cachedSchema(cache, schema, text, task);

    const checkInline = (value: unknown, caller: string): Verdict | undefined => {
      const allowance = Math.min(MAX_INLINE_STEPS, turnBudget.leftFor(caller));
      if (allowance <= 0 || own.costlyCallers.has(caller)) return undefined;
      const budget = { left: allowance };
      try {
        return own.compiled.check(value, budget);
      } catch (error) {
        if (!(error instanceof CheckStopped)) throw error;
        if (error.reason !== "steps") throw tooCostly(task, error.reason);
        if (allowance === MAX_INLINE_STEPS) noteCostly(own, caller);
        return undefined;
      } finally {
        turnBudget.spend(caller, allowance - budget.left);
      }
    };
    const checkInThread = async (value: unknown, caller: string): Promise<SchemaResult> => {
      const asJson = value === undefined ? {} : { value: JSON.stringify(value) };
      try {
        const result = await threads.check(caller, { key: own.key, schema: text, ...asJson });
        if (result.steps <= MAX_INLINE_STEPS) own.costlyCallers.delete(caller);
        return resultOf(value, result);
      } catch (error) {
        if (error instanceof TooManyChecks) throw pawlError("too_many_requests", { what: "the check of a costly input", retryAfter: RETRY_AFTER_MS });
        throw error instanceof CheckStopped ? tooCostly(task, error.reason) : error;
      }
    };
    return {
      "~standard": {
        version: 1,
        vendor: "json-schema",
        validate: (value, options) => {
          const { caller = "" } = (options?.libraryOptions ?? {}) as CheckOptions;
          const verdict = checkInline(value, caller);
          return verdict === undefined ? checkInThread(value, caller) : resultOf(value, verdict);
        },
      },
    };
  };
}

function noteCostly({ costlyCallers }: CachedSchema, caller: string): void {
  if (costlyCallers.size >= MAX_REMEMBERED_CALLERS) costlyCallers.clear();
  costlyCallers.add(caller);
}

function resultOf(value: unknown, { issues }: Verdict): SchemaResult {
  return issues === undefined ? { value } : { issues };
}

const REASONS: Readonly<Record<CheckStopped["reason"], string>> = {
  steps: "it takes too long",
  memory: "it takes too much memory",
  depth: "it is nested too deeply",
};

function tooCostly(task: string, reason: CheckStopped["reason"]): PawlError {
  return pawlError("input_too_costly", { task, reason: REASONS[reason] });
}

function cachedSchema(cache: Map<string, CachedSchema>, schema: JsonSchema, text: string, task: string): CachedSchema {
  const key = createHash("sha256").update(text).digest("base64");
  const own = cache.get(key) ?? { key, compiled: compile(schema, text, task), costlyCallers: new Set<string>() };
  cache.delete(key);
  cache.set(key, own);
  if (cache.size > MAX_CACHED_SCHEMAS) cache.delete(cache.keys().next().value as string);
  return own;
}

function compile(schema: JsonSchema, text: string, task: string): CompiledSchema {
  try {
    checkText(text);
    checkIsSchema(schema);
    return new CompiledSchema(schema);
  } catch (error) {
    if (!(error instanceof SchemaTooCostly)) throw error;
    throw pawlError("task_schema_too_costly", { task, reason: error.message, option: "inputSchema" });
  }
}

/** What may still be done until the event loop has turned. */
class TurnBudget {
  readonly #ofCallers = new Map<string, number>();
  #left = MAX_STEPS_PER_TURN;

  leftFor(caller: string): number {
    return Math.min(this.#left, this.#ofCallers.get(caller) ?? MAX_STEPS_PER_CALLER);
  }

  spend(caller: string, steps: number): void {
    if (this.#ofCallers.size === 0) setImmediate(() => this.#end());
    this.#ofCallers.set(caller, (this.#ofCallers.get(caller) ?? MAX_STEPS_PER_CALLER) - steps);
    this.#left -= steps;
  }

  #end(): void {
    this.#ofCallers.clear();
    this.#left = MAX_STEPS_PER_TURN;
  }
}
