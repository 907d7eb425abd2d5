import { fullFormats } from "ajv-formats/dist/formats.js";
import { expect, test } from "vitest";
import { type SeededRandom, seededRandom } from "../../../../test/support/seeded-random.js";
import { CheckStopped } from "./check-run.js";
import { CompiledSchema } from "./compile.js";
import type { RawSchema } from "./keyword.js";
import { checkIsSchema } from "./metaschema.js";
import { checkText, SchemaTooCostly } from "./schema-cost.js";

/** To repeat a run, or to look for longer: PAWL_SEED=…, PAWL_FUZZ=1000. */
const ROUNDS = Number(process.env.PAWL_FUZZ ?? 15);
/** as of a check that is made at once, and as of one in a thread that has a whole core */
const BUDGETS = [25_000, 3_000_000];

/** ms of the processor: what others do meanwhile is not its fault. A step should take 50 ns; what it may take is far more. */
const PER_COMPILE = 2_000;
const PER_CHECK = 100;
const PER_STEP = 1 / 1_000;
/** MB of heap */
const MAX_HEAP_MB = 500;

const NAMES = ["a", "b", "c", "dd", "eee"];
const PATTERNS = [
  "^a",
  "(a|b)*a(a|b){12}c",
  "(a+)+$",
  "(x+x+)+y",
  "^(([a-z])+.)+[A-Z]([a-z])+$",
  "[a-z]{900}",
  "a?".repeat(60),
  "\\p{L}*\\p{N}",
  `(?i)${"[a-\u{fffff}]".repeat(60)}`,
  "(.*)*=",
];
const FORMATS = Object.keys(fullFormats);

class Hostile {
  constructor(readonly chance: SeededRandom) {}

  schema(): RawSchema {
    const { chance } = this;
    const defs = Array.from({ length: chance.between(1, 8) }, (_, at) => `d${at}`);
    const $defs = Object.fromEntries(defs.map((name) => [name, this.#keywords(defs, chance.between(1, 3))]));
    return { ...this.#keywords(defs, 3), $defs };
  }

  #keywords(defs: readonly string[], depth: number): RawSchema {
    return Object.assign({}, ...Array.from({ length: this.chance.between(1, 3) }, () => this.#keyword(defs, depth))) as RawSchema;
  }

  #keyword(defs: readonly string[], depth: number): RawSchema {
    const { chance } = this;
    const inner = () => (depth === 0 || chance.random() < 0.4 ? { $ref: `#/$defs/${chance.pick(defs)}` } : this.#keywords(defs, depth - 1));
    const schemasByName = (names: readonly string[]) => Object.fromEntries(names.filter(() => chance.random() < 0.6).map((name) => [name, inner()]));
    const some = () => Array.from({ length: chance.between(1, chance.random() < 0.1 ? 40 : 4) }, inner);
    const large = () =>
      Array.from({ length: chance.pick([3, 300, 3_000]) }, (_, at) => (chance.random() < 0.5 ? at : { a: [at, { b: "x".repeat(at % 7) }] }));
    const kinds: readonly (() => RawSchema)[] = [
      () => ({ [chance.pick(["anyOf", "oneOf", "allOf"])]: some() }),
      () => ({ [chance.pick(["not", "if", "items", "contains", "additionalProperties", "propertyNames"])]: inner() }),
      () => ({ items: inner() }),
      () => ({ properties: schemasByName(NAMES) }),
      () => ({ properties: schemasByName(NAMES), additionalProperties: inner() }),
      () => ({ patternProperties: schemasByName(PATTERNS) }),
      () => ({ dependentSchemas: schemasByName(NAMES) }),
      () => ({ prefixItems: some(), items: inner() }),
      () => ({ [chance.pick(["unevaluatedItems", "unevaluatedProperties"])]: inner() }),
      () => ({ uniqueItems: true }),
      () => ({ enum: large() }),
      () => ({ const: large() }),
      () => ({ pattern: chance.pick(PATTERNS) }),
      () => ({ format: chance.pick(FORMATS) }),
      () => ({ type: chance.pick(["object", "array", ["string", "array"], "integer"]) }),
      () => ({ required: NAMES.slice(chance.between(0, 4)), minLength: 1, maxLength: 1_000_000, minProperties: 1 }),
    ];
    return chance.pick(kinds)();
  }

  /** Of at most about a megabyte. */
  value(depth = this.chance.between(1, 50)): unknown {
    const { chance } = this;
    if (depth <= 0) return chance.pick<() => unknown>([() => 1, () => "a", () => null, () => this.#text(), () => ({ a: 1 })])();
    const wide = depth < 4 ? chance.pick([1, 2, 200, depth === 1 ? 40_000 : 60]) : 1;
    const kinds: readonly (() => unknown)[] = [
      () => Array.from({ length: wide }, (_, at) => (at > 100 ? { a: at } : this.value(depth - 1 - (at === 0 ? 0 : 3)))),
      () =>
        Object.fromEntries(
          Array.from({ length: wide }, (_, at) => [at < 5 ? (NAMES[at] as string) : `n${at}`, at > 5 ? at : this.value(depth - 1 - at)]),
        ),
    ];
    return chance.pick(kinds)();
  }

  #text(): string {
    const { chance } = this;
    const text = chance.pick(["ab", "a", "x", "http://a.", "a-a.", "1:", "2024-01-01", "/", "é"]).repeat(chance.pick([1, 10, 1_000, 50_000]));
    return text + chance.pick(["", "!", "\n", "="]);
  }
}

/** ms of the processor */
function cost<T>(what: () => T): readonly [T, number] {
  const before = process.cpuUsage();
  const result = what();
  const { user, system } = process.cpuUsage(before);
  return [result, (user + system) / 1_000];
}

function compiledOrNot(schema: RawSchema): CompiledSchema | undefined {
  try {
    checkText(JSON.stringify(schema));
    checkIsSchema(schema);
    return new CompiledSchema(schema);
  } catch (error) {
    if (error instanceof SchemaTooCostly) return undefined;
    throw error;
  }
}

test("whatever the schema and the input are, a check takes the time of its steps, and a bounded memory", { timeout: 3_600_000 }, () => {
  const dice = seededRandom("hostile schemas");
  const hostile = new Hostile(dice);
  const seen = { refused: 0, checked: 0, unfinished: 0 };
  let worst = { ns: 0, said: "" };
  for (let round = 0; round < ROUNDS; round++) {
    const schema = hostile.schema();
    const text = JSON.stringify(schema);
    const [compiled, took] = cost(() => compiledOrNot(schema));
    expect(took, `to compile: ${text}`).toBeLessThan(PER_COMPILE);
    if (compiled === undefined) {
      seen.refused++;
      continue;
    }
    for (let n = 0; n < 4; n++) {
      const value = JSON.parse(JSON.stringify(hostile.value())) as unknown;
      for (const left of BUDGETS) {
        const budget = { left };
        const heap = process.memoryUsage().heapUsed;
        const [verdict, ms] = cost(() => {
          try {
            return compiled.check(value, budget);
          } catch (error) {
            if (error instanceof CheckStopped) return undefined;
            throw error;
          }
        });
        seen[verdict === undefined ? "unfinished" : "checked"]++;
        const steps = left - Math.max(0, budget.left);
        const description = `${Math.round(ms)} ms for ${steps} steps: ${text.slice(0, 2_000)} of ${JSON.stringify(value).slice(0, 500)}`;
        if (steps > 10_000 && (ms * 1e6) / steps > worst.ns) worst = { ns: (ms * 1e6) / steps, said: description };
        expect(ms, description).toBeLessThan(PER_CHECK + steps * PER_STEP);
        expect((process.memoryUsage().heapUsed - heap) / 2 ** 20, description).toBeLessThan(MAX_HEAP_MB);
        expect(JSON.stringify(verdict?.issues ?? []).length, description).toBeLessThan(50_000);
      }
    }
  }
  if (process.env.PAWL_FUZZ !== undefined) console.log(seen, worst);
  expect(seen.checked).toBeGreaterThan(ROUNDS / 2);
});
