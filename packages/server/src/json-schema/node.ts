import type { CheckRun } from "./check-run.js";
import type { Evaluated } from "./evaluated.js";
import type { Issues, ValuePath } from "./issues.js";

/** Whether the value is what the schema says; with what it looked at, where `unevaluated…` must know. */
export type CheckOutcome = boolean | Evaluated;

export type ValueKind = "null" | "boolean" | "number" | "string" | "array" | "object" | "none";

/** One keyword of a schema, or several that belong together. */
export interface KeywordCheck {
  /** the kinds of values it says something of; left out: all */
  readonly of?: ValueKind;
  /** schemas that it applies to the same value, as far as they can all be applied to one value */
  readonly inPlace?: readonly SchemaNode[];
  passes(value: unknown, run: CheckRun, seen: Evaluated | undefined): boolean;
  /** Says why it does not pass. */
  explain(value: unknown, at: ValuePath, issues: Issues, run: CheckRun): void;
}

/** A schema, compiled. */
export class SchemaNode {
  readonly checks: KeywordCheck[] = [];
  /** by how many schemas it is applied */
  references = 0;
  /** it applies others */
  isInner = false;

  constructor(readonly newEvaluated: () => Evaluated | undefined) {}

  evaluate(value: unknown, run: CheckRun): CheckOutcome {
    run.spend(1 + this.checks.length);
    // Decided once for each value: where several schemas lead to one, and it back to them, a value would cost powers of its depth.
    const isShared = this.isInner && this.references > 1;
    const decided = isShared ? run.decided(this, value) : undefined;
    if (decided !== undefined) return decided;
    run.enter();
    const outcome = this.#decide(value, run);
    run.leave();
    if (isShared) run.decide(this, value, outcome);
    return outcome;
  }

  #decide(value: unknown, run: CheckRun): CheckOutcome {
    const kind = kindOf(value);
    const seen = this.newEvaluated();
    for (const check of this.checks) {
      if (check.of !== undefined && check.of !== kind) continue;
      if (!check.passes(value, run, seen)) return false;
    }
    return seen ?? true;
  }

  /** Says why a value does not pass: by its first check that fails. */
  explain(value: unknown, at: ValuePath, issues: Issues, run: CheckRun): void {
    if (issues.isFull) return;
    run.enter();
    const kind = kindOf(value);
    const seen = this.newEvaluated();
    for (const check of this.checks) {
      if (check.of !== undefined && check.of !== kind) continue;
      if (check.passes(value, run, seen)) continue;
      check.explain(value, at, issues, run);
      break;
    }
    run.leave();
  }
}

export function kindOf(value: unknown): ValueKind {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  const type = typeof value;
  return type === "object" || type === "string" || type === "number" || type === "boolean" ? type : "none";
}
