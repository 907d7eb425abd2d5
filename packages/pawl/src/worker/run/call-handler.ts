import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Context } from "../../core/jobs/context.js";
import { decode } from "../../core/values/json.js";
import { describeIssues, validateStored } from "../../core/values/schema-issues.js";
import type { Attempt } from "./attempt.js";
import type { Invoke } from "./middleware.js";

/** The job's input is not what its task can take. No retry helps, so it dies alone. */
export class Undecodable extends Error {
  override readonly name = "Undecodable";
}

/** Reads and checks the input, then calls the handler. A schema that answers at once costs no promise. */
export function callHandler(invoke: Invoke, attempt: Attempt, ctx: Context): unknown {
  const { task } = attempt.plan;
  const input = readInput(attempt.job.input);
  if (task.schema === undefined) return invoke(task, input, ctx);
  const checked = validateStored(task.schema, input);
  if (checked instanceof Promise) return checked.then((late) => invoke(task, valueOfResult(late), ctx));
  return invoke(task, valueOfResult(checked), ctx);
}

function readInput(text: string | undefined): unknown {
  if (text === undefined) throw new Undecodable("its stored input is missing or unreadable");
  try {
    return decode(text);
  } catch (error) {
    throw new Undecodable("its stored input is not JSON", { cause: error });
  }
}

function valueOfResult(result: StandardSchemaV1.Result<unknown>): unknown {
  if (result.issues === undefined) return result.value;
  throw new Undecodable(`its stored input does not match the schema: ${describeIssues(result.issues)}`);
}
