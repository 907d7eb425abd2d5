import { Ajv2020 } from "ajv/dist/2020.js";
import type { RawSchema } from "./keyword.js";

let ajv: Ajv2020 | undefined;

/** Throws for what is no JSON Schema of 2020-12, with the reason. */
export function checkIsSchema(schema: RawSchema): void {
  ajv ??= new Ajv2020({ strict: false });
  void ajv.validateSchema(schema, true);
}
