import { APPLICATORS } from "./applicators.js";
import { ASSERTIONS } from "./assertions.js";
import { CheckRun, CheckStopped, type StepBudget } from "./check-run.js";
import { Equality } from "./equality.js";
import { Evaluated } from "./evaluated.js";
import { type Issue, Issues } from "./issues.js";
import type { CompileContext, RawSchema } from "./keyword.js";
import { SchemaNode } from "./node.js";
import { Pattern } from "./pattern.js";
import { patternSize } from "./pattern-size.js";
import { References } from "./references.js";
import { checkCount, checkInPlace, checkPatterns } from "./schema-cost.js";

const KEYWORDS = [...ASSERTIONS, ...APPLICATORS];

/** The verdict on a value, without issues: it is what the schema says. */
export interface Verdict {
  readonly issues?: readonly Issue[];
}

/** Of constants: that a schema is small is known before it is compiled. */
const NO_COST = { spend() {}, keep() {}, enter() {}, leave() {} };

/** A schema that values are held against within a budget. Throws for one that cannot be compiled. */
export class CompiledSchema {
  readonly root: SchemaNode;
  readonly nodes: readonly SchemaNode[];
  readonly #constants = new Equality();

  constructor(schema: RawSchema) {
    const compiler = new Compiler(schema, this.#constants);
    this.root = compiler.root;
    this.nodes = compiler.nodes;
    checkInPlace(this.nodes);
  }

  /** Throws `CheckStopped` if the budget does not suffice for a verdict. */
  check(value: unknown, budget: StepBudget): Verdict {
    const run = new CheckRun(budget, new Equality(this.#constants));
    try {
      return this.root.evaluate(value, run) === false ? { issues: this.#issues(value, run) } : {};
    } catch (error) {
      // The stack was less deep than it should be: it is not known what else is on it.
      throw error instanceof RangeError ? new CheckStopped("depth") : error;
    }
  }

  /** That it is wrong is known: if the budget does not suffice to say all of why, less is said. */
  #issues(value: unknown, run: CheckRun): readonly Issue[] {
    const issues = new Issues();
    try {
      this.root.explain(value, undefined, issues, run);
    } catch (error) {
      if (!(error instanceof CheckStopped || error instanceof RangeError)) throw error;
    }
    if (issues.list.length === 0) issues.add("is wrong", undefined);
    return issues.list;
  }
}

class Compiler {
  readonly nodes: SchemaNode[] = [];
  readonly root: SchemaNode;
  readonly #references: References;
  readonly #byRaw = new Map<unknown, SchemaNode>();
  readonly #patterns = new Map<string, Pattern>();
  #sizeOfPatterns = 0;
  readonly #newEvaluated: () => Evaluated | undefined;

  constructor(
    schema: RawSchema,
    readonly constants: Equality,
  ) {
    this.#references = new References(schema);
    this.#newEvaluated = asksForEvaluated(schema) ? () => new Evaluated() : () => undefined;
    this.root = this.#node(schema, this.#references.baseOf(schema, ""));
    this.root.references++;
  }

  #node(raw: unknown, within: string): SchemaNode {
    const existing = this.#byRaw.get(raw);
    if (existing !== undefined) return existing;
    const node = new SchemaNode(this.#newEvaluated);
    this.#byRaw.set(raw, node);
    this.nodes.push(node);
    checkCount(this.nodes.length);
    if (raw === false) node.checks.push(ALWAYS_FAILS);
    if (typeof raw === "boolean") return node;
    if (typeof raw !== "object" || raw === null || Array.isArray(raw)) throw new Error("a reference leads to what is no schema");
    const base = this.#references.baseOf(raw, within);
    const compiling = this.#compiling(node, base);
    for (const keyword of KEYWORDS) {
      const check = keyword(raw as RawSchema, compiling);
      if (check !== undefined) node.checks.push(check);
    }
    return node;
  }

  #compiling(node: SchemaNode, base: string): CompileContext {
    const applied = (raw: unknown, within: string) => {
      const other = this.#node(raw, within);
      other.references++;
      node.isInner = true;
      return other;
    };
    return {
      schema: (raw) => applied(raw, base),
      referenced: (reference, isDynamic) => {
        const found = isDynamic ? this.#references.findDynamic(reference, base) : this.#references.find(reference, base);
        return applied(found.raw, found.base);
      },
      pattern: (source) => {
        let pattern = this.#patterns.get(source);
        if (pattern === undefined) {
          this.#sizeOfPatterns += patternSize(source);
          checkPatterns(this.#sizeOfPatterns);
          pattern = new Pattern(source);
          this.#patterns.set(source, pattern);
        }
        return pattern;
      },
      constant: (value) => this.constants.numberOf(value, NO_COST),
    };
  }
}

const ALWAYS_FAILS: SchemaNode["checks"][number] = {
  passes: () => false,
  explain: (_value, at, issues) => issues.add("boolean schema is false", at),
};

/** What was looked at is noted only where a schema asks for it. A name or constant that looks like the keyword costs a little. */
function asksForEvaluated(schema: RawSchema): boolean {
  return /"unevaluated(Items|Properties)":/.test(JSON.stringify(schema));
}
