import type { Equality } from "./equality.js";
import type { CheckOutcome, SchemaNode } from "./node.js";

/** Steps that may still be taken; a step is about 50 ns of work. */
export interface StepBudget {
  left: number;
  /** gives more steps when there are none, if more may be taken */
  refill?(): void;
}

/** A run stopped without a verdict. */
export class CheckStopped extends Error {
  override readonly name = "CheckStopped";
  constructor(readonly reason: "steps" | "depth" | "memory") {
    super(`a check was stopped: ${reason}`);
  }
}

/** Schemas inside schemas that are being evaluated. Beyond it the stack may end. */
const MAX_DEPTH = 1_000;
/** What is kept for a run: some hundred bytes each. */
const MAX_KEPT_VALUES = 600_000;

/** One value held against one schema: counts the steps, and remembers what was decided. */
export class CheckRun {
  readonly #decided = new Map<SchemaNode, Map<unknown, CheckOutcome>>();
  #depth = 0;
  #keptValues = 0;

  constructor(
    readonly budget: StepBudget,
    readonly equality: Equality,
  ) {}

  spend(steps: number): void {
    const { budget } = this;
    budget.left -= steps;
    if (budget.left >= 0) return;
    budget.refill?.();
    if (budget.left < 0) throw new CheckStopped("steps");
  }

  /** So many more things are kept until the run ends. */
  keep(count: number): void {
    this.#keptValues += count;
    if (this.#keptValues > MAX_KEPT_VALUES) throw new CheckStopped("memory");
  }

  /** A run that was stopped is over, so the depth is not restored then. */
  enter(): void {
    if (++this.#depth > MAX_DEPTH) throw new CheckStopped("depth");
  }

  leave(): void {
    this.#depth--;
  }

  /** Texts and numbers are known by what they are, objects and arrays by their identity: each is at one place of the value. */
  decided(node: SchemaNode, value: unknown): CheckOutcome | undefined {
    return this.#decided.get(node)?.get(value);
  }

  decide(node: SchemaNode, value: unknown, outcome: CheckOutcome): void {
    let outcomes = this.#decided.get(node);
    if (outcomes === undefined) {
      outcomes = new Map();
      this.#decided.set(node, outcomes);
    }
    this.keep(1);
    outcomes.set(value, outcome);
  }
}
