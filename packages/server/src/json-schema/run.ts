import type { Equality } from "./equality.js";
import type { Outcome, SchemaNode } from "./node.js";

/** Steps that may still be taken; a step is about 50 ns of work. */
export interface Budget {
  left: number;
  /** gives more steps when there are none, if more may be taken */
  refill?(): void;
}

/** A run stopped without a verdict. */
export class Unfinished extends Error {
  override readonly name = "Unfinished";
  constructor(readonly reason: "steps" | "depth" | "memory") {
    super(`a check was stopped: ${reason}`);
  }
}

/** Schemas inside schemas that are being evaluated. Beyond it the stack may end. */
const DEEPEST = 1_000;
/** What is kept for a run: some hundred bytes each. */
const MOST_KEPT = 600_000;

/** One value held against one schema: counts the steps, and remembers what was decided. */
export class Run {
  readonly #decided = new Map<SchemaNode, Map<unknown, Outcome>>();
  #depth = 0;
  #kept = 0;

  constructor(
    readonly budget: Budget,
    readonly equality: Equality,
  ) {}

  spend(steps: number): void {
    const { budget } = this;
    budget.left -= steps;
    if (budget.left >= 0) return;
    budget.refill?.();
    if (budget.left < 0) throw new Unfinished("steps");
  }

  /** So many more things are kept until the run ends. */
  keep(count: number): void {
    this.#kept += count;
    if (this.#kept > MOST_KEPT) throw new Unfinished("memory");
  }

  /** A run that was stopped is over, so the depth is not restored then. */
  enter(): void {
    if (++this.#depth > DEEPEST) throw new Unfinished("depth");
  }

  leave(): void {
    this.#depth--;
  }

  /** Texts and numbers are known by what they are, objects and arrays by their identity: each is at one place of the value. */
  decided(node: SchemaNode, value: unknown): Outcome | undefined {
    return this.#decided.get(node)?.get(value);
  }

  decide(node: SchemaNode, value: unknown, outcome: Outcome): void {
    let outcomes = this.#decided.get(node);
    if (outcomes === undefined) {
      outcomes = new Map();
      this.#decided.set(node, outcomes);
    }
    this.keep(1);
    outcomes.set(value, outcome);
  }
}
