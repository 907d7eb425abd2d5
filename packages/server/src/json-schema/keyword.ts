import type { KeywordCheck, SchemaNode } from "./node.js";
import type { Pattern } from "./pattern.js";

export type RawSchema = Readonly<Record<string, unknown>>;

/** What keywords are compiled with. */
export interface CompileContext {
  /** the schema in a keyword; it is applied by the one that is being compiled */
  schema(raw: unknown): SchemaNode;
  /** the schema that a `$ref` or `$dynamicRef` leads to */
  referenced(reference: string, isDynamic: boolean): SchemaNode;
  pattern(source: string): Pattern;
  /** the number of a constant */
  constant(value: unknown): number;
}

/** What a schema says with one keyword, if it has it. */
export type Keyword = (raw: RawSchema, compiling: CompileContext) => KeywordCheck | undefined;

export function schemasIn(raw: unknown, { schema }: CompileContext): readonly (readonly [name: string, schema: SchemaNode])[] {
  return Object.entries(raw as RawSchema).map(([name, one]) => [name, schema(one)]);
}
