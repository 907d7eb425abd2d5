import { createRequire } from "node:module";
import { CheckStopped } from "./check-run.js";
import { CompiledSchema } from "./compile.js";
import type { RawSchema } from "./keyword.js";
import { SchemaTooCostly } from "./schema-cost.js";

const DIALECT = "https://json-schema.org/draft/2020-12/schema";
const PARTS = ["core", "applicator", "unevaluated", "validation", "meta-data", "format-annotation", "content"];
/** A schema of the largest number of schemas takes about a tenth of it. */
const MAX_STEPS = 10_000_000;

let compiled: CompiledSchema | undefined;

/** Throws for what is no JSON Schema of 2020-12, with the reason. */
export function checkIsSchema(schema: RawSchema): void {
  const { $schema = DIALECT } = schema;
  if (typeof $schema !== "string" || $schema.replace(/#$/, "") !== DIALECT) throw new Error(`its $schema is not ${DIALECT}`);
  compiled ??= new CompiledSchema(metaschema());
  const issues = issuesOf(compiled, schema);
  if (issues === undefined) return;
  const [{ path, message }] = issues as [(typeof issues)[number]];
  throw new Error(`${path.length === 0 ? "it" : path.join(".")} ${message}`);
}

function issuesOf(meta: CompiledSchema, schema: RawSchema) {
  try {
    return meta.check(schema, { left: MAX_STEPS }).issues;
  } catch (error) {
    throw error instanceof CheckStopped ? new SchemaTooCostly("it takes too long to read") : error;
  }
}

/** The schema of schemas in one piece. Nothing extends it, so its dynamic references lead to itself. */
function metaschema(): RawSchema {
  const load = createRequire(import.meta.url);
  const read = (name: string) => load(`ajv/dist/refs/json-schema-2020-12/${name}.json`) as RawSchema;
  const text = JSON.stringify({ ...read("schema"), $defs: Object.fromEntries(PARTS.map((name) => [name, read(`meta/${name}`)])) });
  // Which patterns are taken is for RE2 to say.
  const settled = text.replaceAll('"$dynamicRef":"#meta"', `"$ref":"${DIALECT}"`).replaceAll('"format":"regex"', '"type":"string"');
  return JSON.parse(settled) as RawSchema;
}
