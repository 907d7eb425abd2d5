import { parentPort } from "node:worker_threads";
import { CheckStopped, type StepBudget } from "./check-run.js";
import type { ThreadAnswer, ThreadQuestion } from "./check-threads.js";
import { CompiledSchema } from "./compile.js";
import type { RawSchema } from "./keyword.js";

/**
 * Checks inputs that take long, one after the other. It stops by itself before its deadline, so that it need not be ended, which
 * would cost a new thread; that it is ended is for what does not look at the clock.
 */

/** ms from a question to the last look at the clock */
const MAX_CHECK_MS = 150;
const STEPS_PER_MS = 20_000;
/** between two looks at the clock */
const STEPS_BETWEEN = 50_000;
const MAX_CACHED_SCHEMAS = 50;

class TimeBudget implements StepBudget {
  left = STEPS_BETWEEN;
  #granted = STEPS_BETWEEN;

  constructor(readonly endsAt: number) {}

  get spent(): number {
    return this.#granted - this.left;
  }

  /** Something costs more steps than there are: it may be done if it would be done in time. */
  refill(): void {
    const maxSteps = (this.endsAt - performance.now()) * STEPS_PER_MS;
    if (-this.left > maxSteps) return;
    this.#granted += STEPS_BETWEEN - this.left;
    this.left = STEPS_BETWEEN;
  }
}

const cache = new Map<string, CompiledSchema>();

function compiled(key: string, schema: string): CompiledSchema {
  const cached = cache.get(key) ?? new CompiledSchema(JSON.parse(schema) as RawSchema);
  cache.delete(key);
  cache.set(key, cached);
  if (cache.size > MAX_CACHED_SCHEMAS) cache.delete(cache.keys().next().value as string);
  return cached;
}

function answer({ key, schema, value }: ThreadQuestion): ThreadAnswer {
  const budget = new TimeBudget(performance.now() + MAX_CHECK_MS);
  try {
    const { issues } = compiled(key, schema).check(value === undefined ? undefined : JSON.parse(value), budget);
    return { steps: budget.spent, ...(issues === undefined ? {} : { issues }) };
  } catch (error) {
    if (error instanceof CheckStopped) return { unfinished: error.reason };
    throw error;
  }
}

parentPort?.on("message", (question: ThreadQuestion) => parentPort?.postMessage(answer(question)));
parentPort?.postMessage("ready");
