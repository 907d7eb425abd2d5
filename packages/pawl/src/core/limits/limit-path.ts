import type { JsonSchema } from "../values/json-schema.js";
import { didYouMean, invalid, show } from "../values/option.js";
import type { Limit } from "./limit-options.js";

/** A path of a limit, where the schema of the input knows no such field: for its jobs the limit would not exist. */
export interface LostPath {
  /** as in "limits[0].key" */
  readonly option: string;
  readonly reason: string;
  /** no input can have that field, since the schema takes no others than it names */
  readonly certain: boolean;
}

/** Which paths of these limits lead nowhere, as far as the schema can tell. */
export function lostPaths(limits: readonly Limit<never>[] = [], schema: JsonSchema | undefined): readonly LostPath[] {
  if (schema === undefined) return [];
  return limits.flatMap((limit, index) =>
    (["key", "cost"] as const).flatMap((name) => {
      const path = limit[name];
      const lost = typeof path === "string" && path !== "" ? lostIn(schema, path) : undefined;
      return lost === undefined ? [] : [{ option: `limits[${index}].${name}`, ...lost }];
    }),
  );
}

/** Refuses those that no input can have. */
export function checkLimitPaths(task: string, limits: readonly Limit<never>[] | undefined, schema: JsonSchema | undefined): void {
  const lost = lostPaths(limits, schema).find(({ certain }) => certain);
  if (lost !== undefined) throw invalid(`${task}.${lost.option}`, lost.reason);
}

/** What says more about fields than their names do. Where it is used, a name that is not there proves nothing. */
const MORE = ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"];

function lostIn(schema: JsonSchema, path: string): Pick<LostPath, "reason" | "certain"> | undefined {
  let at: unknown = schema;
  for (const field of path.split(".")) {
    if (!isObject(at) || MORE.some((word) => word in (at as object)) || !isObject(at.properties)) return undefined;
    const { properties, additionalProperties: others } = at;
    if (!Object.hasOwn(properties, field)) {
      const names = Object.keys(properties);
      if (isObject(others) || (names.length === 0 && others !== false)) return undefined;
      return {
        reason: `${show(path)} leads nowhere: the input's schema has no ${show(field)}${didYouMean(field, names)} there`,
        certain: others === false,
      };
    }
    at = properties[field];
  }
  return undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
