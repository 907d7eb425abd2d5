import { describe, expect, test } from "vitest";
import { BEFORE } from "../before.js";
import type { Scenario } from "../contract/scenario.js";
import { help, parseArguments } from "./arguments.js";

const scenario = (name: string): Scenario => ({ name, measures: "…", systems: [], jobs: 1, runs: 1, run: () => Promise.reject(new Error()) });
const known = [scenario("drain"), scenario("idle")];

describe("the command line", () => {
  test("without a name, every scenario is run with its own sizes", () => {
    expect(parseArguments([], known)).toEqual({ scenarios: known, json: false, help: false });
  });

  test("a scenario, sizes and systems can be chosen", () => {
    expect(parseArguments(["drain", "--jobs", "20_000", "--runs", "1", "--only", "pawl, pg-boss", "--json"], known)).toEqual({
      scenarios: [known[0]],
      jobs: 20_000,
      runs: 1,
      only: ["pawl", "pg-boss"],
      json: true,
      help: false,
    });
  });

  test("paired turns are beside the commit of the wave, or beside another one", () => {
    expect(parseArguments(["drain", "--paired"], known)).toMatchObject({ before: BEFORE });
    expect(parseArguments(["drain", "--before", "abc123"], known)).toMatchObject({ before: "abc123" });
  });

  test("what is unknown is answered with what there is", () => {
    expect(() => parseArguments(["drian"], known)).toThrow("unknown: drian. There are drain, idle.");
    expect(() => parseArguments(["--only", "pgboss"], known)).toThrow(/unknown: pgboss\. There are pawl, .*pg-boss/);
    expect(() => parseArguments(["--jobs", "many"], known)).toThrow("--jobs wants a whole number from 1 up, not many");
  });

  test("the help names every scenario", () => {
    expect(help(known)).toMatch(/drain[\s\S]*idle/);
  });
});
