import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { CheckOptions } from "./json-schema.js";

const MAX_ISSUES = 5;

/** JSON has no undefined: a job enqueued without input is stored with null, and its schema may want the one or the other. */
export function validateStored(
  schema: StandardSchemaV1,
  value: unknown,
  caller?: string,
): StandardSchemaV1.Result<unknown> | Promise<StandardSchemaV1.Result<unknown>> {
  const standard = schema["~standard"];
  const options = caller === undefined ? undefined : { libraryOptions: { caller } satisfies CheckOptions };
  const validate = (input: unknown) => (options === undefined ? standard.validate(input) : standard.validate(input, options));
  const result = validate(value);
  if (value !== null) return result;
  if (result instanceof Promise) return result.then((late) => (late.issues === undefined ? late : validate(undefined)));
  return result.issues === undefined ? result : validate(undefined);
}

/** Where in the value the first of them is: a JSON pointer. */
export function pointerOf([first]: readonly StandardSchemaV1.Issue[]): string {
  const escaped = (part: string) => part.replaceAll("~", "~0").replaceAll("/", "~1");
  return partsOf(first)
    .map((part) => `/${escaped(part)}`)
    .join("");
}

function partsOf(issue: StandardSchemaV1.Issue | undefined): readonly string[] {
  return (issue?.path ?? []).map((part) => String(typeof part === "object" ? part.key : part));
}

/** What a schema has against a value, in its own words and with the path: "cart.id: expected string". */
export function describeIssues(issues: readonly StandardSchemaV1.Issue[]): string {
  const shown = issues.slice(0, MAX_ISSUES).map((issue) => {
    const at = partsOf(issue).join(".");
    return at === "" ? issue.message : `${at}: ${issue.message}`;
  });
  const more = issues.length - shown.length;
  return shown.join("; ") + (more > 0 ? `; and ${more} more` : "");
}
