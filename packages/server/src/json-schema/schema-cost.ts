import type { SchemaNode } from "./node.js";

/** A schema that would cost too much, to compile or to check an input against, here or in a worker. */
export class SchemaTooCostly extends Error {
  override readonly name = "SchemaTooCostly";
}

/** characters, and nested brackets and braces */
const MAX_CHARACTERS = 1_000_000;
const MAX_DEPTH = 100;
/** schemas in a schema */
const MAX_SCHEMAS = 5_000;
/** Schemas that may be applied to one value, and one inside the other: a chain in which each leads to the next one twice is a power of two. */
const MAX_SCHEMAS_IN_PLACE = 10_000;
const MAX_CHAIN = 100;
/** of all patterns together, as instructions: each is about 10 µs of compiling */
const MAX_INSTRUCTIONS = 10_000;

/** Before anything walks through it. */
export function checkText(text: string): void {
  if (text.length > MAX_CHARACTERS) throw new SchemaTooCostly(`it has more than ${MAX_CHARACTERS} characters`);
  if (depthOf(text) > MAX_DEPTH) throw new SchemaTooCostly(`it is nested more than ${MAX_DEPTH} levels deep`);
}

export function checkCount(schemas: number): void {
  if (schemas > MAX_SCHEMAS) throw new SchemaTooCostly(`it holds more than ${MAX_SCHEMAS} schemas`);
}

export function checkPatterns(size: number): void {
  if (size > MAX_INSTRUCTIONS)
    throw new SchemaTooCostly(
      `its patterns come to ${size} signs, those that are repeated counted as often as they are; ${MAX_INSTRUCTIONS} are taken`,
    );
}

/** How much is applied to one value by what does not remember what it decided, as the validators of workers. */
export function checkInPlace(nodes: readonly SchemaNode[]): void {
  const costs = new Map<SchemaNode, { readonly schemas: number; readonly chain: number }>();
  const under = new Set<SchemaNode>();
  const measured = (node: SchemaNode) => {
    const before = costs.get(node);
    if (before !== undefined) return before;
    if (under.has(node)) throw new SchemaTooCostly("it leads to itself without going into the value");
    under.add(node);
    let schemas = 1;
    let chain = 1;
    for (const { inPlace = [] } of node.checks) {
      for (const other of inPlace) {
        const inside = measured(other);
        schemas += inside.schemas;
        chain = Math.max(chain, inside.chain + 1);
      }
    }
    if (schemas > MAX_SCHEMAS_IN_PLACE)
      throw new SchemaTooCostly(
        `more than ${MAX_SCHEMAS_IN_PLACE} schemas are applied to one value, those that are reached in several ways counted as often`,
      );
    if (chain > MAX_CHAIN) throw new SchemaTooCostly(`more than ${MAX_CHAIN} schemas are applied to one value, one inside the other`);
    under.delete(node);
    costs.set(node, { schemas, chain });
    return { schemas, chain };
  };
  for (const node of nodes) measured(node);
}

function depthOf(text: string): number {
  let depth = 0;
  let maxDepth = 0;
  for (const sign of text.replaceAll(/"(?:[^"\\]|\\.)*"/g, "")) {
    if (sign === "{" || sign === "[") maxDepth = Math.max(maxDepth, ++depth);
    else if (sign === "}" || sign === "]") depth--;
  }
  return maxDepth;
}
