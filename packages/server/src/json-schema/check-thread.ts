import { parentPort } from "node:worker_threads";
import type { ThreadAnswer, ThreadQuestion } from "./check-threads.js";
import { CompiledSchema } from "./compile.js";
import type { RawSchema } from "./keyword.js";
import { type Budget, Unfinished } from "./run.js";

/**
 * Checks inputs that take long, one after the other. It stops by itself before its deadline, so that it need not be ended, which
 * would cost a new thread; that it is ended is for what does not look at the clock.
 */

/** ms from a question to the last look at the clock */
const LONGEST = 150;
const STEPS_PER_MS = 20_000;
/** between two looks at the clock */
const STEPS_BETWEEN = 50_000;
const MOST_SCHEMAS = 50;

class TimeBudget implements Budget {
  left = STEPS_BETWEEN;
  #given = STEPS_BETWEEN;

  constructor(readonly endsAt: number) {}

  get spent(): number {
    return this.#given - this.left;
  }

  /** Something costs more steps than there are: it may be done if it would be done in time. */
  refill(): void {
    const most = (this.endsAt - performance.now()) * STEPS_PER_MS;
    if (-this.left > most) return;
    this.#given += STEPS_BETWEEN - this.left;
    this.left = STEPS_BETWEEN;
  }
}

const kept = new Map<string, CompiledSchema>();

function compiled(key: string, schema: string): CompiledSchema {
  const known = kept.get(key) ?? new CompiledSchema(JSON.parse(schema) as RawSchema);
  kept.delete(key);
  kept.set(key, known);
  if (kept.size > MOST_SCHEMAS) kept.delete(kept.keys().next().value as string);
  return known;
}

function answer({ key, schema, value }: ThreadQuestion): ThreadAnswer {
  const budget = new TimeBudget(performance.now() + LONGEST);
  try {
    const { issues } = compiled(key, schema).check(value === undefined ? undefined : JSON.parse(value), budget);
    return { steps: budget.spent, ...(issues === undefined ? {} : { issues }) };
  } catch (error) {
    if (error instanceof Unfinished) return { unfinished: error.reason };
    throw error;
  }
}

parentPort?.on("message", (question: ThreadQuestion) => parentPort?.postMessage(answer(question)));
parentPort?.postMessage("ready");
