import type { StandardSchemaV1 } from "@standard-schema/spec";
import { BOUNDS } from "../../core/values/bounds.js";
import { pawlError } from "../../core/values/error.js";
import { decode, encode } from "../../core/values/json.js";
import { describeIssues, pointerOf, validateStored } from "../../core/values/schema-issues.js";

/**
 * An input in stored form, or the error that says what is wrong with it and where. The schema sees what the worker
 * will see, the value read back from JSON: what cannot make that journey (a Date, a Map) is refused here, where the
 * caller can mend it, not by a dead job. What is stored is the value as given: the worker parses it again.
 *
 * Answers at once unless the schema is asynchronous, so that a stream of a million inputs costs no million turns.
 */
export function encodeInput(task: string, schema: StandardSchemaV1 | undefined, input: unknown, caller?: string): string | Promise<string> {
  const encoded = encode(input);
  if (!encoded.ok) throw pawlError("input_unencodable", { task, reason: encoded.reason });
  const { text } = encoded;
  checkSize(task, text);
  if (schema === undefined) return text;
  const result = validateStored(schema, decode(text), caller);
  if (!(result instanceof Promise)) return accept(task, result, text);
  return result.then((late) => accept(task, late, text));
}

function accept(task: string, result: StandardSchemaV1.Result<unknown>, text: string): string {
  if (result.issues === undefined) return text;
  throw pawlError("input_invalid", { task, issues: describeIssues(result.issues), path: pointerOf(result.issues) });
}

function checkSize(task: string, text: string): void {
  const limit = BOUNDS.input;
  // No character takes more than three bytes per unit of length: most inputs are known to fit without being measured.
  if (text.length * 3 <= limit) return;
  const size = Buffer.byteLength(text);
  if (size > limit) throw pawlError("input_too_large", { task, size, limit });
}
