import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import formats from "ajv-formats";
import type { PawlError } from "pawl";
import { pawlError } from "pawl/service";
import type { TObject } from "typebox";
import type { AnyRoute } from "../contract/route.js";
import { closedObject } from "../contract/schemas.js";

const shared = { strict: false, allErrors: false } as const;
/** Values of a body are what they are; those of a URL are texts that stand for numbers and truths. */
const bodies = withFormats(new Ajv(shared));
const urls = withFormats(new Ajv({ ...shared, coerceTypes: true }));

function withFormats(ajv: Ajv): Ajv {
  formats.default(ajv);
  return ajv;
}

/** What a request says, checked against its route. */
export interface RequestFields {
  readonly params: Readonly<Record<string, unknown>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: unknown;
}

const NO_FIELDS = closedObject({});

/** Made once per route. The first thing that is wrong is an error with a pointer to it. */
export function reader(route: AnyRoute): (raw: RequestFields) => RequestFields {
  const { params = NO_FIELDS, query = NO_FIELDS, body = NO_FIELDS } = route;
  const checks = { params: urls.compile(params), query: urls.compile(query), body: bodies.compile(body) };
  const optional = route.body === undefined || route.bodyOptional === true;
  return (raw) => {
    check(checks.params, raw.params, "path");
    digitsToNumbers(query, raw.query);
    check(checks.query, raw.query, "query");
    const bodyValue = raw.body ?? (optional ? {} : undefined);
    check(checks.body, bodyValue, "");
    return { params: raw.params, query: raw.query, body: bodyValue };
  };
}

/** A URL holds texts: of what may be a number or a text, such as a duration or a time, digits alone are a number. */
function digitsToNumbers({ properties }: TObject, values: RequestFields["query"]): void {
  for (const [name, value] of Object.entries(values)) {
    const { type } = (Object.hasOwn(properties, name) ? properties[name] : {}) as { readonly type?: unknown };
    if (Array.isArray(type) && typeof value === "string" && /^\d{1,15}$/.test(value)) (values as Record<string, unknown>)[name] = Number(value);
  }
}

/** Checks a part of a body that is looked at by itself; `where` is the pointer to it. */
export function checker(schema: object): (value: unknown, where: string) => void {
  const validate = bodies.compile(schema);
  return (value, where) => check(validate, value, where);
}

function check(validate: ValidateFunction, value: unknown, where: string): void {
  if (validate(value)) return;
  const firstError = (validate.errors as ErrorObject[])[0] as ErrorObject;
  throw misspelt(validate, firstError, value, where) ?? fieldInvalid(firstError, where);
}

/** Where something is missing at the top, a field that nobody knows is more likely what was meant by it. */
function misspelt(validate: ValidateFunction, { keyword, instancePath }: ErrorObject, value: unknown, where: string): PawlError | undefined {
  const { properties, additionalProperties } = validate.schema as { readonly properties?: object; readonly additionalProperties?: boolean };
  if (keyword !== "required" || instancePath !== "" || additionalProperties !== false || properties === undefined) return undefined;
  const stray = Object.keys(value as object).find((name) => !Object.hasOwn(properties, name));
  return stray === undefined ? undefined : unknownField(where, stray);
}

/** Pointers into the body are plain; those into a URL begin with its part. */
function fieldInvalid({ instancePath, keyword, params, message = "is wrong" }: ErrorObject, where: string): PawlError {
  const at = where === "" ? instancePath : `${where}${instancePath}`;
  if (keyword === "additionalProperties") {
    const { additionalProperty } = params as { additionalProperty: string };
    return unknownField(at, additionalProperty);
  }
  if (keyword === "required") {
    const pointer = `${at}/${(params as { missingProperty: string }).missingProperty}`;
    return pawlError("field_invalid", { field: pointer, reason: "is missing", pointer });
  }
  const reason = keyword === "enum" ? `must be one of ${(params as { allowedValues: readonly unknown[] }).allowedValues.join(", ")}` : message;
  return pawlError("field_invalid", { field: at === "" ? "the body" : at, reason: reason.slice(0, 200), pointer: at });
}

function unknownField(at: string, name: string): PawlError {
  const pointer = `${at}/${name.slice(0, 100).replaceAll("~", "~0").replaceAll("/", "~1")}`;
  return pawlError("field_unknown", { field: pointer, pointer });
}
