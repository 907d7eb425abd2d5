import type { StandardSchemaV1 } from "@standard-schema/spec";

/** A JSON Schema (2020-12), as callers in other languages know the input of a task by. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** What is told to a schema whose checks may have to wait for one another, as its `libraryOptions`. */
export interface CheckOptions {
  /** whose share of what callers share it uses; left out: nobody's in particular */
  readonly caller?: string;
}

/** Makes a schema that inputs of a task are checked with out of a JSON Schema; throws if it is none. The service has one. */
export type SchemaCompiler = (schema: JsonSchema, task: string) => StandardSchemaV1;

const TARGET = "draft-2020-12";

/** What a Standard Schema says of itself as JSON Schema, where its library can tell (zod and others do). */
export function jsonSchemaOf(schema: StandardSchemaV1 | undefined): JsonSchema | undefined {
  const props = schema?.["~standard"] as { readonly jsonSchema?: { input?(options: { target: string }): JsonSchema } } | undefined;
  try {
    return props?.jsonSchema?.input?.({ target: TARGET });
  } catch {
    // A schema with code in it (a transform, a refinement of a type JSON has not) cannot be said so: its worker checks it.
    return undefined;
  }
}
