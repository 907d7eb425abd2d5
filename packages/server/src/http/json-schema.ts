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
/** ms */
const RETRY_AFTER = 1_000;

interface Kept {
  readonly key: string;
  readonly compiled: CompiledSchema;
  /** the last input was none to check at once, so the next one is not tried */
  isCostly: boolean;
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

    const atOnce = (value: unknown): Verdict | undefined => {
      if (own.isCostly || turn.left <= 0) return undefined;
      const given = Math.min(STEPS_AT_ONCE, turn.left);
      const budget = { left: given };
      try {
        return own.compiled.check(value, budget);
      } catch (error) {
        if (!(error instanceof Unfinished)) throw error;
        if (error.reason !== "steps") throw refused(task, error.reason);
        own.isCostly = given === STEPS_AT_ONCE;
        return undefined;
      } finally {
        turn.spend(given - budget.left);
      }
    };
    const inThread = async (value: unknown, caller: string): Promise<Result> => {
      const asJson = value === undefined ? {} : { value: JSON.stringify(value) };
      try {
        const judged = await threads.check(caller, { key: own.key, schema: text, ...asJson });
        own.isCostly = judged.steps > STEPS_AT_ONCE;
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
          const verdict = atOnce(value);
          if (verdict !== undefined) return resultOf(value, verdict);
          const { caller = "" } = (options?.libraryOptions ?? {}) as CheckOptions;
          return inThread(value, caller);
        },
      },
    };
  };
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
  const own = kept.get(key) ?? { key, compiled: compile(schema, text, task), isCostly: false };
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
  left = STEPS_OF_A_TURN;
  #ends = false;

  spend(steps: number): void {
    this.left -= steps;
    if (this.#ends) return;
    this.#ends = true;
    setImmediate(() => {
      this.#ends = false;
      this.left = STEPS_OF_A_TURN;
    });
  }
}
