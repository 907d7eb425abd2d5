import { createHash } from "node:crypto";
import { type JsonSchema, pawlError, type SchemaCompiler } from "pawl";
import { CompiledSchema } from "../json-schema/compile.js";
import { checkIsSchema } from "../json-schema/metaschema.js";
import { type Budget, Unfinished } from "../json-schema/run.js";

/** Schemas of others: what they cost does not grow with how many there are. */
const MOST_KEPT = 500;
/** About a tenth of a second. All inputs of one turn of the event loop share it, so that a batch does not cost more than one input. */
const STEPS_OF_A_TURN = 2_000_000;

/** Turns the JSON Schema of a task's input into what the library checks inputs with. Throws if it is no schema. */
export function schemaCompiler(): SchemaCompiler {
  const kept = new Map<string, CompiledSchema>();
  const budget = budgetOfTurns();
  return (schema, task) => {
    const compiled = keptOrCompiled(kept, schema);
    const validate = (value: unknown) => {
      try {
        const { issues } = compiled.check(value, budget());
        return issues === undefined ? { value } : { issues };
      } catch (error) {
        if (error instanceof Unfinished)
          throw pawlError("input_too_costly", { task, reason: error.reason === "depth" ? "it is nested too deeply" : "it takes too many steps" });
        throw error;
      }
    };
    return { "~standard": { version: 1, vendor: "json-schema", validate } };
  };
}

function keptOrCompiled(kept: Map<string, CompiledSchema>, schema: JsonSchema): CompiledSchema {
  const hash = createHash("sha256").update(JSON.stringify(schema)).digest("base64");
  let compiled = kept.get(hash);
  if (compiled === undefined) {
    checkIsSchema(schema);
    compiled = new CompiledSchema(schema);
  }
  kept.delete(hash);
  kept.set(hash, compiled);
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value as string);
  return compiled;
}

/** The same budget until the event loop has turned. */
function budgetOfTurns(): () => Budget {
  let budget: Budget | undefined;
  return () => {
    if (budget === undefined) {
      budget = { left: STEPS_OF_A_TURN };
      setImmediate(() => {
        budget = undefined;
      });
    }
    return budget;
  };
}
