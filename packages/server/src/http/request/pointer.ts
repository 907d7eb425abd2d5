import { isPawlError, type PawlError } from "pawl";
import { pawlError } from "pawl/service";
import type { AnyRoute } from "../contract/route.js";

/** Where a problem is, as far as the error knows: a field by the library's name for it. */
export function pointerOf({ code, details: { pointer, option, path } }: PawlError): string | undefined {
  if (typeof pointer === "string") return pointer;
  if (code.startsWith("input_")) return `/input${path ?? ""}`;
  return typeof option === "string" ? `/${namesOf(option).join("/")}` : undefined;
}

/** The same error, with a pointer to where the request of a route has that field: in its body, its query or its path. */
export function withPointer(error: unknown, route: AnyRoute): unknown {
  if (!isPawlError(error) || error.details.pointer !== undefined || typeof error.details.option !== "string") return error;
  const pointer = pointerIn(route, namesOf(error.details.option));
  return pointer === undefined ? error : pawlError(error.code, { ...error.details, pointer }, error.cause);
}

/** What the library is given as a part of something (`page.limit`, `of.last`) may stand by itself in a request. */
function pointerIn({ body, query, params }: AnyRoute, names: readonly string[]): string | undefined {
  const locations = [
    ["", body],
    ["query", query],
    ["path", params],
  ] as const;
  for (const own of [names, names.slice(1)]) {
    const [first = ""] = own;
    for (const [where, schema] of locations) {
      if (schema !== undefined && Object.hasOwn(schema.properties, first)) return `${where}/${own.join("/")}`;
    }
  }
  return undefined;
}

function namesOf(option: string): readonly string[] {
  return option.replaceAll(/[.[]/g, "/").replaceAll("]", "").split("/");
}
