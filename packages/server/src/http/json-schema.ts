import { createHash } from "node:crypto";
import { type JsonSchema, pawlError, type SchemaCompiler } from "pawl";
import { CompiledSchema } from "../json-schema/compile.js";
import { checkText, TooCostly } from "../json-schema/measure.js";
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
    const compiled = keptOrCompiled(kept, schema, task);
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

function keptOrCompiled(kept: Map<string, CompiledSchema>, schema: JsonSchema, task: string): CompiledSchema {
  const text = JSON.stringify(schema);
  const hash = createHash("sha256").update(text).digest("base64");
  const compiled = kept.get(hash) ?? compile(schema, text, task);
  kept.delete(hash);
  kept.set(hash, compiled);
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value as string);
  return compiled;
}

function compile(schema: JsonSchema, text: string, task: string): CompiledSchema {
  try {
    checkText(text);
    checkIsSchema(schema);
    return new CompiledSchema(schema);
  } catch (error) {
    if (!(error instanceof TooCostly)) throw error;
    throw pawlError("task_schema_too_costly", { task, reason: error.message, option: "inputSchema" });
  }
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
