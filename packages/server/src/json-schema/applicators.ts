import type { CheckRun } from "./check-run.js";
import { Evaluated } from "./evaluated.js";
import { type Issues, inside, type ValuePath } from "./issues.js";
import { type Keyword, type RawSchema, schemasIn } from "./keyword.js";
import type { CheckOutcome, KeywordCheck, SchemaNode } from "./node.js";

/** Keywords that apply other schemas to the same value, or to its parts. */

type Fields = Readonly<Record<string, unknown>>;

/** Applies a schema to the same value; what it looked at is looked at. */
function applies(node: SchemaNode, value: unknown, run: CheckRun, seen: Evaluated | undefined): boolean {
  return holds(node.evaluate(value, run), run, seen);
}

function holds(outcome: CheckOutcome, run: CheckRun, seen: Evaluated | undefined): boolean {
  if (seen !== undefined && outcome instanceof Evaluated) seen.add(outcome, run);
  return outcome !== false;
}

/** All of these, in place. */
function all(nodes: readonly SchemaNode[]): KeywordCheck {
  return {
    inPlace: nodes,
    passes: (value, run, seen) => nodes.every((node) => applies(node, value, run, seen)),
    explain: (value, at, issues, run) => firstFailing(nodes, value, run)?.explain(value, at, issues, run),
  };
}

function firstFailing(nodes: readonly SchemaNode[], value: unknown, run: CheckRun): SchemaNode | undefined {
  return nodes.find((node) => node.evaluate(value, run) === false);
}

const reference: Keyword = ({ $ref, $dynamicRef }, { referenced }) => {
  const nodes: SchemaNode[] = [];
  if (typeof $ref === "string") nodes.push(referenced($ref, false));
  if (typeof $dynamicRef === "string") nodes.push(referenced($dynamicRef, true));
  return nodes.length === 0 ? undefined : all(nodes);
};

const allOf: Keyword = ({ allOf: keywordValue }, { schema }) =>
  keywordValue === undefined ? undefined : all((keywordValue as readonly unknown[]).map(schema));

/** Where it matters what was looked at, the others are tried after one has passed, too. */
const anyOf: Keyword = ({ anyOf: keywordValue }, { schema }) => {
  if (keywordValue === undefined) return undefined;
  const nodes = (keywordValue as readonly unknown[]).map(schema);
  return {
    inPlace: nodes,
    passes: (value, run, seen) =>
      seen === undefined
        ? nodes.some((node) => node.evaluate(value, run) !== false)
        : nodes.filter((node) => applies(node, value, run, seen)).length > 0,
    explain: (value, at, issues, run) => {
      for (const node of nodes) node.explain(value, at, issues, run);
      issues.add("must match a schema in anyOf", at);
    },
  };
};

const oneOf: Keyword = ({ oneOf: keywordValue }, { schema }) => {
  if (keywordValue === undefined) return undefined;
  const nodes = (keywordValue as readonly unknown[]).map(schema);
  return {
    inPlace: nodes,
    passes: (value, run, seen) => {
      let passed: CheckOutcome = false;
      for (const node of nodes) {
        const outcome = node.evaluate(value, run);
        if (outcome === false) continue;
        if (passed !== false) return false;
        passed = outcome;
      }
      return holds(passed, run, seen);
    },
    explain: (value, at, issues, run) => {
      if (nodes.every((node) => node.evaluate(value, run) === false)) for (const node of nodes) node.explain(value, at, issues, run);
      issues.add("must match exactly one schema in oneOf", at);
    },
  };
};

const not: Keyword = ({ not: keywordValue }, { schema }) => {
  if (keywordValue === undefined) return undefined;
  const node = schema(keywordValue);
  return {
    inPlace: [node],
    passes: (value, run) => node.evaluate(value, run) === false,
    explain: (_value, at, issues) => issues.add("must NOT be valid", at),
  };
};

const conditional: Keyword = (raw, { schema }) => {
  if (raw.if === undefined) return undefined;
  const test = schema(raw.if);
  const [then, otherwise] = [raw.then, raw.else].map((one) => (one === undefined ? undefined : schema(one)));
  const following = (holds: boolean) => (holds ? then : otherwise);
  return {
    inPlace: [test, then, otherwise].filter((node) => node !== undefined),
    passes: (value, run, seen) => {
      const next = following(applies(test, value, run, seen));
      return next === undefined || applies(next, value, run, seen);
    },
    explain: (value, at, issues, run) => following(test.evaluate(value, run) !== false)?.explain(value, at, issues, run),
  };
};

const dependentSchemas: Keyword = (raw, compiling) => {
  const { dependentSchemas: keywordValue = {}, dependencies = {} } = raw as Readonly<Record<string, RawSchema>>;
  const more = Object.fromEntries(Object.entries(dependencies).filter(([, needs]) => !Array.isArray(needs)));
  const schemas = [...schemasIn(keywordValue, compiling), ...schemasIn(more, compiling)];
  if (schemas.length === 0) return undefined;
  const concerned = (value: object) => schemas.flatMap(([name, node]) => (Object.hasOwn(value, name) ? [node] : []));
  return {
    of: "object",
    inPlace: schemas.map(([, node]) => node),
    passes: (value, run, seen) => {
      run.spend(schemas.length);
      return concerned(value as object).every((node) => applies(node, value, run, seen));
    },
    explain: (value, at, issues, run) => firstFailing(concerned(value as object), value, run)?.explain(value, at, issues, run),
  };
};

/** `properties`, `patternProperties` and `additionalProperties`: which of them a name is for depends on the others. */
const properties: Keyword = (raw, compiling) => {
  const { properties: keywordValue = {}, patternProperties = {} } = raw as Readonly<Record<string, RawSchema>>;
  const byName = new Map(schemasIn(keywordValue, compiling));
  const patterns = schemasIn(patternProperties, compiling).map(([source, node]) => [compiling.pattern(source), node] as const);
  const others = raw.additionalProperties === undefined ? undefined : compiling.schema(raw.additionalProperties);
  if (byName.size === 0 && patterns.length === 0 && others === undefined) return undefined;

  /** The schemas for one name, the only one of which in most cases is that of `properties`. */
  const schemasFor = (name: string, run: CheckRun): readonly SchemaNode[] => {
    const own = byName.get(name);
    if (patterns.length === 0) return own === undefined ? (others === undefined ? NONE : [others]) : [own];
    const matching = patterns.filter(([pattern]) => pattern.matches(name, run)).map(([, node]) => node);
    if (own !== undefined) matching.unshift(own);
    return matching.length === 0 && others !== undefined ? [others] : matching;
  };
  const failing = (value: Fields, run: CheckRun, seen: Evaluated | undefined): readonly [name: string, node: SchemaNode] | undefined => {
    const names = Object.keys(value);
    run.spend(names.length);
    for (const name of names) {
      const nodes = schemasFor(name, run);
      for (const node of nodes) if (node.evaluate(value[name], run) === false) return [name, node];
      if (nodes.length > 0) seen?.names.add(name);
    }
    return undefined;
  };
  return {
    of: "object",
    passes: (value, run, seen) => failing(value as Fields, run, seen) === undefined,
    explain: (value, at, issues, run) => {
      const [name, node] = failing(value as Fields, run, undefined) as readonly [string, SchemaNode];
      if (node === others && raw.additionalProperties === false) issues.add("is not known", inside(at, name));
      else node.explain((value as Fields)[name], inside(at, name), issues, run);
    },
  };
};
const NONE: readonly SchemaNode[] = [];

const propertyNames: Keyword = ({ propertyNames: keywordValue }, { schema }) => {
  if (keywordValue === undefined) return undefined;
  const node = schema(keywordValue);
  const wrong = (value: object, run: CheckRun): string | undefined => {
    const names = Object.keys(value);
    run.spend(names.length);
    return names.find((name) => node.evaluate(name, run) === false);
  };
  return {
    of: "object",
    passes: (value, run) => wrong(value as object, run) === undefined,
    explain: (value, at, issues, run) => {
      node.explain(wrong(value as object, run), at, issues, run);
      issues.add("property name must be valid", at);
    },
  };
};

function explainItem(items: readonly unknown[], index: number, node: SchemaNode, at: ValuePath, issues: Issues, run: CheckRun): void {
  node.explain(items[index], inside(at, index), issues, run);
}

/** `prefixItems`, and `items` for the rest. */
const items: Keyword = (raw, { schema }) => {
  if (raw.prefixItems === undefined && raw.items === undefined) return undefined;
  const prefix = ((raw.prefixItems ?? []) as readonly unknown[]).map(schema);
  const rest = raw.items === undefined ? undefined : schema(raw.items);
  const nodeFor = (index: number) => prefix[index] ?? rest;
  const failing = (list: readonly unknown[], run: CheckRun): number => {
    const checkedItems = rest === undefined ? Math.min(prefix.length, list.length) : list.length;
    run.spend(checkedItems);
    for (let index = 0; index < checkedItems; index++) if (nodeFor(index)?.evaluate(list[index], run) === false) return index;
    return -1;
  };
  return {
    of: "array",
    passes: (value, run, seen) => {
      if (failing(value as readonly unknown[], run) !== -1) return false;
      if (seen !== undefined) {
        seen.items = Math.max(seen.items, prefix.length);
        seen.allItems ||= rest !== undefined;
      }
      return true;
    },
    explain: (value, at, issues, run) => {
      const list = value as readonly unknown[];
      const index = failing(list, run);
      if (rest !== undefined && index >= prefix.length && raw.items === false) issues.add(`must NOT have more than ${prefix.length} items`, at);
      else explainItem(list, index, nodeFor(index) as SchemaNode, at, issues, run);
    },
  };
};

/** What it says of how many is `minContains` and `maxContains`, which say nothing without it. */
const contains: Keyword = (raw, { schema }) => {
  if (raw.contains === undefined) return undefined;
  const node = schema(raw.contains);
  const { minContains: min = 1, maxContains: max } = raw as { readonly minContains?: number; readonly maxContains?: number };
  return {
    of: "array",
    passes: (value, run, seen) => {
      const list = value as readonly unknown[];
      run.spend(list.length);
      let count = 0;
      for (const [index, item] of list.entries()) {
        if (node.evaluate(item, run) === false) continue;
        count++;
        seen?.indexes.add(index);
        if (max !== undefined && count > max) return false;
        // The others matter only to who must know which were looked at.
        if (count >= min && max === undefined && seen === undefined) return true;
      }
      return count >= min;
    },
    explain: (_value, at, issues) =>
      issues.add(`must contain at least ${min}${max === undefined ? "" : ` and no more than ${max}`} valid item(s)`, at),
  };
};

/** Those that look at what all others of the schema have looked at, so they come last. */
const unevaluatedProperties: Keyword = ({ unevaluatedProperties: keywordValue }, { schema }) => {
  if (keywordValue === undefined) return undefined;
  const node = schema(keywordValue);
  const wrong = (value: Fields, run: CheckRun, seen: Evaluated): string | undefined => {
    const names = Object.keys(value);
    run.spend(names.length);
    return names.find((name) => !seen.hasName(name) && node.evaluate(value[name], run) === false);
  };
  return unevaluated(
    "object",
    (value, run, seen) => wrong(value as Fields, run, seen) === undefined,
    (seen) => {
      seen.allNames = true;
    },
    "must NOT have unevaluated properties",
  );
};

const unevaluatedItems: Keyword = ({ unevaluatedItems: keywordValue }, { schema }) => {
  if (keywordValue === undefined) return undefined;
  const node = schema(keywordValue);
  return unevaluated(
    "array",
    (value, run, seen) => {
      const list = value as readonly unknown[];
      run.spend(list.length);
      return list.every((item, index) => seen.hasItem(index) || node.evaluate(item, run) !== false);
    },
    (seen) => {
      seen.allItems = true;
    },
    "must NOT have unevaluated items",
  );
};

function unevaluated(
  of: "object" | "array",
  passes: (value: unknown, run: CheckRun, seen: Evaluated) => boolean,
  note: (seen: Evaluated) => void,
  message: string,
): KeywordCheck {
  return {
    of,
    passes: (value, run, seen) => {
      // A schema with such a keyword in it tells what it looks at.
      if (!passes(value, run, seen as Evaluated)) return false;
      note(seen as Evaluated);
      return true;
    },
    explain: (_value, at, issues) => issues.add(message, at),
  };
}

export const APPLICATORS: readonly Keyword[] = [
  reference,
  propertyNames,
  properties,
  items,
  contains,
  dependentSchemas,
  not,
  anyOf,
  oneOf,
  allOf,
  conditional,
  unevaluatedProperties,
  unevaluatedItems,
];
