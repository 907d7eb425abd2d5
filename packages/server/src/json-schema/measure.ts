import type { SchemaNode } from "./node.js";

/** A schema that would cost too much, to compile or to check an input against, here or in a worker. */
export class TooCostly extends Error {
  override readonly name = "TooCostly";
}

/** characters, and nested brackets and braces */
const LONGEST = 1_000_000;
const DEEPEST = 100;
/** schemas in a schema */
const MOST_SCHEMAS = 5_000;
/** Schemas that may be applied to one value, and one inside the other: a chain in which each leads to the next one twice is a power of two. */
const MOST_IN_PLACE = 10_000;
const LONGEST_CHAIN = 100;
/** of all patterns together, as instructions: each is about 10 µs of compiling */
const MOST_OF_PATTERNS = 10_000;

/** Before anything walks through it. */
export function checkText(text: string): void {
  if (text.length > LONGEST) throw new TooCostly(`it has more than ${LONGEST} characters`);
  if (depthOf(text) > DEEPEST) throw new TooCostly(`it is nested more than ${DEEPEST} levels deep`);
}

export function checkCount(schemas: number): void {
  if (schemas > MOST_SCHEMAS) throw new TooCostly(`it holds more than ${MOST_SCHEMAS} schemas`);
}

export function checkPatterns(size: number): void {
  if (size > MOST_OF_PATTERNS)
    throw new TooCostly(`its patterns come to ${size} signs, those that are repeated counted as often as they are; ${MOST_OF_PATTERNS} are taken`);
}

/** How much is applied to one value by what does not remember what it decided, as the validators of workers. */
export function checkInPlace(nodes: readonly SchemaNode[]): void {
  const known = new Map<SchemaNode, { readonly schemas: number; readonly chain: number }>();
  const under = new Set<SchemaNode>();
  const measured = (node: SchemaNode) => {
    const before = known.get(node);
    if (before !== undefined) return before;
    if (under.has(node)) throw new TooCostly("it leads to itself without going into the value");
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
    if (schemas > MOST_IN_PLACE)
      throw new TooCostly(`more than ${MOST_IN_PLACE} schemas are applied to one value, those that are reached in several ways counted as often`);
    if (chain > LONGEST_CHAIN) throw new TooCostly(`more than ${LONGEST_CHAIN} schemas are applied to one value, one inside the other`);
    under.delete(node);
    known.set(node, { schemas, chain });
    return { schemas, chain };
  };
  for (const node of nodes) measured(node);
}

function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const sign of text.replaceAll(/"(?:[^"\\]|\\.)*"/g, "")) {
    if (sign === "{" || sign === "[") deepest = Math.max(deepest, ++depth);
    else if (sign === "}" || sign === "]") depth--;
  }
  return deepest;
}
