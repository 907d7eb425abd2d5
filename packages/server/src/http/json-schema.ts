import { createHash } from "node:crypto";
import { type CheckOptions, type JsonSchema, type PawlError, pawlError, type SchemaCompiler } from "pawl";
import { CheckThreads, Crowded } from "../json-schema/check-threads.js";
import { CompiledSchema, type Verdict } from "../json-schema/compile.js";
import { checkText, TooCostly } from "../json-schema/measure.js";
import { checkIsSchema } from "../json-schema/metaschema.js";
import { Unfinished } from "../json-schema/run.js";

/** Schemas of others: what they cost does not grow with how many there are. */
const MOST_KEPT = 500;
/** Steps that are taken at once, about 1 ms of them; and in one turn of the event loop, so that a batch holds nobody up either. */
const STEPS_AT_ONCE = 25_000;
const STEPS_OF_A_TURN = 100_000;
/** Of a turn, for one caller: others find some left. */
const STEPS_OF_A_CALLER = 60_000;
/** callers that are remembered for a schema */
const MOST_CALLERS = 1_000;
/** ms */
const RETRY_AFTER = 1_000;

interface Kept {
  readonly key: string;
  readonly compiled: CompiledSchema;
  /** callers whose last input was none to check at once: their next one is not tried */
  readonly costlyOf: Set<string>;
}

type Result = { readonly value: unknown } | { readonly issues: NonNullable<Verdict["issues"]> };

/**
 * Turns the JSON Schema of a task's input into what the library checks inputs with. Throws if it is no schema. Inputs are checked at
 * once as long as that takes a few steps; others, from the start again, in a thread.
 */
export function schemaCompiler(threads: Pick<CheckThreads, "check"> = new CheckThreads()): SchemaCompiler {
  const kept = new Map<string, Kept>();
  const turn = new Turn();
  return (schema, task) => {
    const text = JSON.stringify(schema);
    const own = keep(kept, schema, text, task);

    const atOnce = (value: unknown, caller: string): Verdict | undefined => {
      const given = Math.min(STEPS_AT_ONCE, turn.leftFor(caller));
      if (given <= 0 || own.costlyOf.has(caller)) return undefined;
      const budget = { left: given };
      try {
        return own.compiled.check(value, budget);
      } catch (error) {
        if (!(error instanceof Unfinished)) throw error;
        if (error.reason !== "steps") throw refused(task, error.reason);
        if (given === STEPS_AT_ONCE) noteCostly(own, caller);
        return undefined;
      } finally {
        turn.spend(caller, given - budget.left);
      }
    };
    const inThread = async (value: unknown, caller: string): Promise<Result> => {
      const asJson = value === undefined ? {} : { value: JSON.stringify(value) };
      try {
        const judged = await threads.check(caller, { key: own.key, schema: text, ...asJson });
        if (judged.steps <= STEPS_AT_ONCE) own.costlyOf.delete(caller);
        return resultOf(value, judged);
      } catch (error) {
        if (error instanceof Crowded) throw pawlError("too_many_requests", { what: "the check of a costly input", retryAfter: RETRY_AFTER });
        throw error instanceof Unfinished ? refused(task, error.reason) : error;
      }
    };
    return {
      "~standard": {
        version: 1,
        vendor: "json-schema",
        validate: (value, options) => {
          const { caller = "" } = (options?.libraryOptions ?? {}) as CheckOptions;
          const verdict = atOnce(value, caller);
          return verdict === undefined ? inThread(value, caller) : resultOf(value, verdict);
        },
      },
    };
  };
}

function noteCostly({ costlyOf }: Kept, caller: string): void {
  if (costlyOf.size >= MOST_CALLERS) costlyOf.clear();
  costlyOf.add(caller);
}

function resultOf(value: unknown, { issues }: Verdict): Result {
  return issues === undefined ? { value } : { issues };
}

const REASONS: Readonly<Record<Unfinished["reason"], string>> = {
  steps: "it takes too long",
  memory: "it takes too much memory",
  depth: "it is nested too deeply",
};

function refused(task: string, reason: Unfinished["reason"]): PawlError {
  return pawlError("input_too_costly", { task, reason: REASONS[reason] });
}

function keep(kept: Map<string, Kept>, schema: JsonSchema, text: string, task: string): Kept {
  const key = createHash("sha256").update(text).digest("base64");
  const own = kept.get(key) ?? { key, compiled: compile(schema, text, task), costlyOf: new Set<string>() };
  kept.delete(key);
  kept.set(key, own);
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value as string);
  return own;
}

function compile(schema: JsonSchema, text: string, task: string): CompiledSchema {
  try {
    checkText(text);
    checkIsSchema(schema);
    return new CompiledSchema(schema);
  } catch (error) {
    if (!(error instanceof TooCostly)) throw error;
    throw pawlError("task_schema_too_costly", { task, reason: error.message, option: "inputSchema" });
  }
}

/** What may still be done until the event loop has turned. */
class Turn {
  readonly #ofCallers = new Map<string, number>();
  #left = STEPS_OF_A_TURN;

  leftFor(caller: string): number {
    return Math.min(this.#left, this.#ofCallers.get(caller) ?? STEPS_OF_A_CALLER);
  }

  spend(caller: string, steps: number): void {
    if (this.#ofCallers.size === 0) setImmediate(() => this.#end());
    this.#ofCallers.set(caller, (this.#ofCallers.get(caller) ?? STEPS_OF_A_CALLER) - steps);
    this.#left -= steps;
  }

  #end(): void {
    this.#ofCallers.clear();
    this.#left = STEPS_OF_A_TURN;
  }
}
