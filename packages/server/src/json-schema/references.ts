import type { RawSchema } from "./keyword.js";

/** Keywords that hold a schema, a list of schemas, or schemas by name. */
const KEYWORDS_WITH_SCHEMA = new Set(
  "items contains additionalProperties propertyNames not if then else unevaluatedItems unevaluatedProperties".split(" "),
);
const KEYWORDS_WITH_LIST = new Set("prefixItems allOf anyOf oneOf".split(" "));
const KEYWORDS_WITH_NAMES = new Set("properties patternProperties dependentSchemas dependencies $defs definitions".split(" "));

/** Names of schemas are URIs; those that are not whole count from here, which leads nowhere. */
const NO_BASE_URI = "https://schema.invalid/";

/** A part of a schema, and what its references count from. */
export interface SchemaLocation {
  readonly raw: unknown;
  readonly base: string;
}

/** Where the references of one schema lead: to itself and its parts. Nothing is ever fetched. */
export class References {
  readonly #byUri = new Map<string, SchemaLocation>();
  readonly #dynamic = new Map<string, number>();
  readonly #bases = new Map<object, string>();

  constructor(readonly root: RawSchema) {
    this.#byUri.set(NO_BASE_URI, { raw: root, base: NO_BASE_URI });
    this.#scan(root, NO_BASE_URI);
  }

  /** What references in this schema count from. */
  baseOf(raw: object, within: string): string {
    return this.#bases.get(raw) ?? within;
  }

  find(reference: string, base: string): SchemaLocation {
    const [uri, fragment] = split(reference, base);
    const anchored = fragment === "" || fragment.startsWith("/") ? undefined : this.#byUri.get(`${uri}#${fragment}`);
    if (anchored !== undefined) return anchored;
    const document = this.#byUri.get(uri);
    const found = document !== undefined && (fragment === "" || fragment.startsWith("/")) ? this.#follow(document, fragment) : undefined;
    if (found === undefined) throw new Error(`can't resolve reference ${reference.slice(0, 100)}`);
    return found;
  }

  /** Which of several it leads to would depend on how it was reached. */
  findDynamic(reference: string, base: string): SchemaLocation {
    const [, fragment] = split(reference, base);
    if ((this.#dynamic.get(fragment) ?? 0) > 1) throw new Error(`there is more than one $dynamicAnchor ${fragment.slice(0, 100)}`);
    return this.find(reference, base);
  }

  #follow({ raw, base }: SchemaLocation, pointer: string): SchemaLocation | undefined {
    let at: SchemaLocation = { raw, base };
    for (const part of pointer.split("/").slice(1)) {
      const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
      if (typeof at.raw !== "object" || at.raw === null || !Object.hasOwn(at.raw, name)) return undefined;
      const next = (at.raw as RawSchema)[name];
      at = { raw: next, base: typeof next === "object" && next !== null ? this.baseOf(next, at.base) : at.base };
    }
    return at;
  }

  #scan(raw: unknown, within: string): void {
    if (typeof raw !== "object" || raw === null || Array.isArray(raw)) return;
    const { $id, $anchor, $dynamicAnchor } = raw as RawSchema;
    let base = within;
    if (typeof $id === "string") {
      [base] = split($id, within);
      this.#name(base, { raw, base });
    }
    this.#bases.set(raw, base);
    for (const anchor of new Set([$anchor, $dynamicAnchor])) if (typeof anchor === "string") this.#name(`${base}#${anchor}`, { raw, base });
    if (typeof $dynamicAnchor === "string") this.#dynamic.set($dynamicAnchor, (this.#dynamic.get($dynamicAnchor) ?? 0) + 1);
    for (const [keyword, value] of Object.entries(raw)) {
      if (KEYWORDS_WITH_SCHEMA.has(keyword)) this.#scan(value, base);
      else if (KEYWORDS_WITH_LIST.has(keyword) && Array.isArray(value)) for (const one of value) this.#scan(one, base);
      else if (KEYWORDS_WITH_NAMES.has(keyword) && typeof value === "object" && value !== null)
        for (const one of Object.values(value)) this.#scan(one, base);
    }
  }

  #name(uri: string, found: SchemaLocation): void {
    const existing = this.#byUri.get(uri);
    if (existing !== undefined && existing.raw !== found.raw) throw new Error(`two schemas are called ${uri.slice(0, 100)}`);
    this.#byUri.set(uri, found);
  }
}

function split(reference: string, base: string): readonly [uri: string, fragment: string] {
  try {
    const url = new URL(reference, base);
    const fragment = decodeURIComponent(url.hash.slice(1));
    url.hash = "";
    return [url.href, fragment];
  } catch {
    throw new Error(`${reference.slice(0, 100)} is no reference`);
  }
}
