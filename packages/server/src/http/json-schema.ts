import { createHash } from "node:crypto";
import type { AnySchema, ErrorObject, ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import type { SchemaCompiler } from "pawl";
import { RE2JS } from "re2js";

/** Schemas of others: their patterns run in linear time, and what they cost does not grow with how many there are. */
const MOST_KEPT = 500;
const MOST_ISSUES = 5;

/** A pattern that cannot be turned into a search without end. What RE2 does not know (look-around) is refused with the schema. */
const regExp = Object.assign(
  (pattern: string, _flags: string) => {
    const compiled = RE2JS.compile(pattern, 0);
    // ajv tells patterns apart by their text.
    return { test: (text: string) => compiled.matcher(text).find(), toString: () => pattern } as RegExp;
  },
  { code: "re2" },
);

/** Turns the JSON Schema of a task's input into what the library checks inputs with. Throws if it is no schema. */
export function schemaCompiler(): SchemaCompiler {
  const kept = new Map<string, ValidateFunction>();
  return (schema) => {
    const hash = createHash("sha256").update(JSON.stringify(schema)).digest("base64");
    let validate = kept.get(hash);
    if (validate === undefined) {
      // An instance of its own: two schemas may have the same $id, and none can refer to another's.
      const ajv = new Ajv2020({ strict: false, allErrors: false, code: { regExp } });
      formats.default(ajv);
      validate = ajv.compile(schema as AnySchema);
    }
    kept.delete(hash);
    kept.set(hash, validate);
    if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value as string);
    return standard(validate);
  };
}

function standard(validate: ValidateFunction): ReturnType<SchemaCompiler> {
  return {
    "~standard": {
      version: 1,
      vendor: "json-schema",
      validate: (value) => (validate(value) ? { value } : { issues: (validate.errors as ErrorObject[]).slice(0, MOST_ISSUES).map(issueOf) }),
    },
  };
}

/** What is missing, or should not be there, is named by its path like anything else. */
function issueOf({ instancePath, keyword, params, message = "is wrong" }: ErrorObject) {
  const path = instancePath
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  const { missingProperty, additionalProperty } = params as { readonly missingProperty?: string; readonly additionalProperty?: string };
  if (keyword === "required") return { message: "is missing", path: [...path, missingProperty as string] };
  if (keyword === "additionalProperties") return { message: "is not known", path: [...path, (additionalProperty as string).slice(0, 100)] };
  return { message, path };
}
