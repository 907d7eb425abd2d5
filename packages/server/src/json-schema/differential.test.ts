import { randomInt } from "node:crypto";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { expect, test } from "vitest";
import { CompiledSchema } from "./compile.js";
import type { RawSchema } from "./keyword.js";
import { SchemaTooCostly } from "./schema-cost.js";

/** To repeat a run, or to look for longer: PAWL_SEED=…, PAWL_FUZZ=100000. */
const SEED = Number(process.env.PAWL_SEED ?? randomInt(2 ** 31));
const RUNS = Number(process.env.PAWL_FUZZ ?? 40) * 25;

const name = fc.constantFrom("a", "b", "c");
const small = fc.integer({ min: 0, max: 3 });
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom<unknown>(null, true, false, 0, -0, 1, 2, 1.5, -1, "", "a", "b", "ab", "𝒳", "1"),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(name, tie("value"), { maxKeys: 3 }),
  ),
}));

const one = <T>(key: string, arbitrary: fc.Arbitrary<T>) => arbitrary.map((generated) => ({ [key]: generated }));
const { schema } = fc.letrec<{ schema: unknown; said: object; keyword: object; ref: object }>((tie) => ({
  schema: fc.oneof({ depthSize: "small", withCrossShrink: true }, fc.boolean(), tie("said")),
  said: fc.array(tie("keyword"), { minLength: 1, maxLength: 3 }).map((all) => Object.assign({}, ...all) as object),
  ref: one("$ref", fc.constantFrom("#", "#/$defs/x", "#/$defs/y", "#z")),
  keyword: fc.oneof(
    tie("ref"),
    one(
      "type",
      fc.oneof(fc.constantFrom("null", "boolean", "object", "array", "number", "string", "integer"), fc.constant(["integer", "string", "object"])),
    ),
    one("const", value),
    one("enum", fc.array(value, { minLength: 1, maxLength: 3 })),
    one("minimum", small),
    one("exclusiveMaximum", small),
    one("multipleOf", fc.constantFrom(1, 0.5, 2)),
    one("minLength", small),
    one("maxLength", small),
    one("pattern", fc.constantFrom("^a", "b$", "^(a|b)+$", "[0-9]")),
    one("minItems", small),
    one("maxItems", small),
    one("uniqueItems", fc.boolean()),
    one("minProperties", small),
    one("maxProperties", small),
    one("required", fc.uniqueArray(name, { maxLength: 2 })),
    one("dependentRequired", fc.dictionary(name, fc.uniqueArray(name, { maxLength: 2 }), { maxKeys: 2 })),
    one("properties", fc.dictionary(name, tie("schema"), { maxKeys: 3 })),
    one("patternProperties", fc.dictionary(fc.constantFrom("^a", "[bc]"), tie("schema"), { maxKeys: 2 })),
    one("additionalProperties", tie("schema")),
    one("propertyNames", tie("schema")),
    one("dependentSchemas", fc.dictionary(name, tie("schema"), { maxKeys: 2 })),
    one("items", tie("schema")),
    one("prefixItems", fc.array(tie("schema"), { minLength: 1, maxLength: 3 })),
    fc.record({ contains: tie("said"), minContains: small }, { requiredKeys: ["contains"] }),
    fc.record({ contains: tie("said"), maxContains: fc.integer({ min: 1, max: 3 }) }),
    ...["allOf", "anyOf", "oneOf"].map((key) => one(key, fc.array(tie("schema"), { minLength: 1, maxLength: 3 }))),
    one("not", tie("schema")),
    fc
      .array(tie("schema"), { minLength: 3, maxLength: 3 })
      .map((generated) => Object.fromEntries(["if", "then", "else"].map((key, at) => [key, generated[at]]))),
    one("unevaluatedProperties", tie("schema")),
    one("unevaluatedItems", tie("schema")),
  ) as fc.Arbitrary<object>,
}));
const objectSchema = schema.filter((generated) => typeof generated === "object") as fc.Arbitrary<object>;
const document = fc
  .record({ root: objectSchema, x: objectSchema, y: objectSchema, z: objectSchema })
  .map(({ root, x, y, z }) => ({ ...root, $defs: { x, y, z: { ...z, $anchor: "z" } } }));

/** Those that lead to themselves without going into the value are refused. */
function compileOrNot(schema: RawSchema): CompiledSchema | undefined {
  try {
    return new CompiledSchema(schema);
  } catch (error) {
    if (error instanceof SchemaTooCostly) return undefined;
    throw error;
  }
}

/** Of some schemas it makes code that fails, or none. */
function ajvOf(schema: object): (value: unknown) => boolean | "none" {
  try {
    const validate = new Ajv2020({ strict: false, validateSchema: false, logger: false }).compile(schema);
    return (value) => orNone(() => validate(value));
  } catch {
    return () => "none";
  }
}

function orNone(check: () => boolean): boolean | "none" {
  try {
    return check();
  } catch {
    return "none";
  }
}

test(`the verdicts are those of Ajv, and those of an evaluation that remembers nothing (seed ${SEED})`, { timeout: 600_000 }, () => {
  const seen = { valid: 0, invalid: 0 };
  const property = fc.property(document, fc.array(value, { minLength: 3, maxLength: 6 }), (...made) => {
    const [generated, values] = JSON.parse(JSON.stringify(made)) as typeof made;
    const compiled = compileOrNot(generated);
    if (compiled === undefined) return;
    const forgetful = new CompiledSchema(generated);
    for (const node of forgetful.nodes) node.references = 0;
    const ajv = ajvOf(generated);
    for (const one of values) {
      const ours = compiled.check(one, { left: 1e6 }).issues === undefined;
      const plain = forgetful.check(one, { left: 1e6 }).issues === undefined;
      const theirs = ajv(one);
      seen[ours ? "valid" : "invalid"]++;
      const said = JSON.stringify({ generated, one });
      expect(plain, said).toBe(ours);
      if (theirs !== "none" && isKnownToAjv(generated, one)) expect(ours, said).toBe(theirs);
    }
  });
  fc.assert(property, { seed: SEED, numRuns: RUNS });
  expect(Math.min(seen.valid, seen.invalid)).toBeGreaterThan(RUNS / 2);
});

/**
 * Where Ajv differs from the standard: it forgets what a reference to where it is has evaluated, takes all items for evaluated that
 * `contains` has looked at, and at times finds nothing wrong with an array that must contain something: an empty one, or one of `prefixItems`.
 */
function isKnownToAjv(generated: object, value: unknown): boolean {
  const text = JSON.stringify(generated);
  const has = (pattern: RegExp) => pattern.test(text);
  return (
    !(has(/"unevaluated/) && has(/"(contains|if|\$ref)":/)) &&
    !(has(/"contains":/) && (has(/"prefixItems":/) || JSON.stringify(value).includes("[]")))
  );
}
