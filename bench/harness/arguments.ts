import { parseArgs } from "node:util";
import { BEFORE } from "../before.js";
import type { Scenario } from "../contract/scenario.js";
import { SYSTEMS } from "../systems/about.ts";

export interface BenchArguments {
  readonly scenarios: readonly Scenario[];
  readonly jobs?: number;
  readonly runs?: number;
  /** names of systems; absent: all */
  readonly only?: readonly string[];
  /** beside which commit Pawl is measured, in paired turns; absent: beside its peers */
  readonly before?: string;
  readonly json: boolean;
  readonly help: boolean;
}

/** Throws what a person can read. */
export function parseArguments(args: readonly string[], known: readonly Scenario[]): BenchArguments {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      jobs: { type: "string" },
      runs: { type: "string" },
      only: { type: "string" },
      paired: { type: "boolean", default: false },
      before: { type: "string" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const scenarios = positionals.length === 0 ? known : positionals.map((name) => found(name, known));
  const only = values.only?.split(",").map((name) => found(name.trim(), SYSTEMS).name);
  const before = values.before ?? (values.paired ? BEFORE : undefined);
  return {
    scenarios,
    ...(before === undefined ? {} : { before }),
    json: values.json,
    help: values.help,
    ...(values.jobs === undefined ? {} : { jobs: count("--jobs", values.jobs) }),
    ...(values.runs === undefined ? {} : { runs: count("--runs", values.runs) }),
    ...(only === undefined ? {} : { only }),
  };
}

function found<T extends { readonly name: string }>(name: string, among: readonly T[]): T {
  const match = among.find((each) => each.name === name);
  if (match === undefined) throw new Error(`unknown: ${name}. There are ${among.map((each) => each.name).join(", ")}.`);
  return match;
}

function count(option: string, text: string): number {
  const value = Number(text.replaceAll("_", ""));
  if (!Number.isInteger(value) || value < 1) throw new Error(`${option} wants a whole number from 1 up, not ${text}`);
  return value;
}

export function help(known: readonly Scenario[]): string {
  const width = Math.max(...known.map(({ name }) => name.length));
  return [
    "npm run bench -- [scenario …] [--jobs N] [--runs R] [--only system,…] [--json]",
    "npm run bench -- --paired [scenario …] [--before COMMIT] [--jobs N] [--runs R]   beside an earlier commit, in turns",
    "",
    ...known.map(({ name, measures }) => `  ${name.padEnd(width)}  ${measures}`),
    "",
    `  systems: ${SYSTEMS.map(({ name }) => name).join(", ")}`,
  ].join("\n");
}
