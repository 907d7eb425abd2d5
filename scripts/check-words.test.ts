import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

interface Finding {
  readonly rule: string;
  readonly file: string;
  readonly line?: number;
  readonly text: string;
}
type Counts = Readonly<Record<string, Readonly<Record<string, number>>>>;
interface CheckWords {
  check(root: string): readonly Finding[];
  countsOf(findings: readonly Finding[]): Counts;
  compare(
    findings: readonly Finding[],
    allowed: Counts,
  ): { readonly fresh: readonly Finding[]; readonly lower: readonly { readonly file: string }[] };
  wordsOf(name: string): readonly string[];
}

const { check, compare, countsOf, wordsOf } = (await import(new URL("./check-words.mjs", import.meta.url).href)) as CheckWords;
const SRC = "packages/pawl/src";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "pawl-words-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function plant(files: Readonly<Record<string, string>>): void {
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
}

/** The rules that these files break, each once. */
function broken(files: Readonly<Record<string, string>>): readonly string[] {
  plant(files);
  return [...new Set(check(root).map(({ rule }) => rule))].sort();
}

/** What fails, and what is so near to it that it could be taken for it, for each rule. */
const CASES: Readonly<Record<string, readonly { readonly fails: Record<string, string>; readonly passes: Record<string, string> }[]>> = {
  word: [
    {
      fails: { [`${SRC}/core/a.ts`]: "const lastKnock = 1;" },
      passes: { [`${SRC}/core/a.ts`]: "const lastLimitCheck = 1; // no knock, see ADR 25" },
    },
    {
      fails: { [`${SRC}/core/a.ts`]: "interface Job { bands: number }" },
      passes: { [`${SRC}/core/a.ts`]: "interface Job { husband: number; bandwidth: number }" },
    },
    { fails: { [`${SRC}/core/a.ts`]: "class A { #tallies = 0 }" }, passes: { [`${SRC}/core/a.ts`]: "class A { #counters = 0 }" } },
    { fails: { [`${SRC}/worker/conveyor.ts`]: "export {};" }, passes: { [`${SRC}/worker/pipeline.ts`]: "export {};" } },
    { fails: { "test/support/seat-fixture.ts": "export {};" }, passes: { "test/support/handoff-fixture.ts": "export {};" } },
    { fails: { [`${SRC}/core/a.ts`]: "const wall = 1;" }, passes: { [`${SRC}/core/a.ts`]: "const wallClock = 1; const firewall = 2;" } },
    { fails: { [`${SRC}/core/a.ts`]: "const portion = 1;" }, passes: { [`${SRC}/core/a.ts`]: "const proportion = 1;" } },
    { fails: { [`${SRC}/core/a.ts`]: "const told = 1;" }, passes: { "test/jobs/a.test.ts": "const told = 1;" } },
  ],
  "type-name": [
    {
      fails: { [`${SRC}/core/a.ts`]: "export interface Given { a: 1 }" },
      passes: { [`${SRC}/core/a.ts`]: "export interface EnqueueOptions { a: 1 }" },
    },
    { fails: { [`${SRC}/core/a.ts`]: "type Standing = 1;" }, passes: { [`${SRC}/core/a.ts`]: "type LimitStanding = 1;" } },
    { fails: { "test/jobs/a.test.ts": "class Held {}" }, passes: { "test/jobs/a.test.ts": "class HeldSlot {}" } },
  ],
  "type-twice": [
    {
      fails: { [`${SRC}/core/a.ts`]: "interface Row { a: 1 }", [`${SRC}/core/b.ts`]: "type Row = 1;" },
      passes: {
        [`${SRC}/core/a.ts`]: "interface Row { a: 1 } interface Row { b: 1 }",
        [`${SRC}/core/b.test.ts`]: "type Row = 1;",
        "packages/server/src/c.ts": "type Row = 1;",
      },
    },
  ],
  comment: [
    {
      fails: { [`${SRC}/core/a.ts`]: "/** Whoever claims, renews. */\nexport {};" },
      passes: { [`${SRC}/core/a.ts`]: "/** The worker that claims, renews. */\nexport {};" },
    },
    {
      fails: { [`${SRC}/core/a.ts`]: "// Leases end. What is left is reaped.\nexport {};" },
      passes: { [`${SRC}/core/a.ts`]: "// Why it ends, and what is left. What if it does?\nexport {};" },
    },
    {
      fails: { [`${SRC}/core/a.ts`]: "// Those that\n// waited go first.\nexport {};" },
      passes: { [`${SRC}/core/a.ts`]: "// Jobs, and those\n// that waited.\nexport {};" },
    },
    {
      fails: { [`${SRC}/core/a.ts`]: "const a = 1; // of which most are gone" },
      passes: { [`${SRC}/core/a.ts`]: 'const a = "// of which"; const b = `http://what`;' },
    },
    {
      fails: { [`${SRC}/store/postgres/claim/claim.sql`]: "-- One that waits is skipped.\nselect 1;" },
      passes: { [`${SRC}/store/postgres/claim/claim.sql`]: "-- A waiting job is skipped.\nselect 1;" },
    },
  ],
  unit: [
    {
      fails: { [`${SRC}/core/a.ts`]: "const LEASE_DURATION = 15 * 1000;" },
      passes: { [`${SRC}/core/a.ts`]: "const LEASE_MS = 15 * 1000; const MAX_RETRIES = 10_000;" },
    },
    {
      fails: { [`${SRC}/core/a.ts`]: "class A { static readonly TIMEOUT = 5; }" },
      passes: { [`${SRC}/core/a.ts`]: "class A { static readonly TIMEOUT_S = 5; }" },
    },
    {
      fails: { [`${SRC}/core/a.ts`]: "const BODY = 64 * 1024;" },
      passes: { [`${SRC}/core/a.ts`]: "const BODY_BYTES = 64 * 1024; const NAME = 'a'; const small = 5_000;" },
    },
    {
      fails: { [`${SRC}/core/a.ts`]: "const MAX_BODY = 64 * 1024; const MAX_WAIT = 5_000;" },
      passes: { [`${SRC}/core/a.ts`]: "const MAX_WAITING = 10_000; const NO_TIMEOUT = 0; const SECRET_LENGTH = 43;" },
    },
  ],
  most: [{ fails: { [`${SRC}/core/a.ts`]: "const MOST_JOBS = 5;" }, passes: { [`${SRC}/core/a.ts`]: "const MAX_JOBS = 5; const ALMOST_JOBS = 4;" } }],
  folder: [{ fails: manyFiles(21), passes: { ...manyFiles(20), [`${SRC}/core/limits/more.test.ts`]: "export {};" } }],
  room: [
    {
      fails: { [`${SRC}/core/misc/a.ts`]: "export {};" },
      passes: { [`${SRC}/core/limits/a.ts`]: "export {};", [`${SRC}/core/limits/keys/b.ts`]: "export {};" },
    },
    { fails: { [`${SRC}/store/memory/drivers/a.ts`]: "export {};" }, passes: { [`${SRC}/store/postgres/drivers/a.ts`]: "export {};" } },
  ],
  postgres: [
    {
      fails: { [`${SRC}/worker/a.ts`]: 'const text = "select id from job";' },
      passes: { [`${SRC}/worker/a.ts`]: 'const text = "to select jobs from the list";' },
    },
    { fails: { [`${SRC}/core/a.ts`]: "const pgConfig = 1;" }, passes: { [`${SRC}/store/postgres/drivers/a.ts`]: "const pgConfig = 1;" } },
    { fails: { [`${SRC}/scheduler/a.ts`]: 'const cast = "$1::uuid";' }, passes: { [`${SRC}/open.ts`]: 'const postgresUrl = "$1::uuid";' } },
    {
      fails: { "packages/server/src/http/a.ts": 'const lock = "pg_advisory_lock";' },
      passes: { "packages/server/src/config/a.ts": 'const postgres = "postgres://";' },
    },
  ],
};

function manyFiles(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, n) => [`${SRC}/core/limits/file-${"abcdefghijklmnopqrstuvwxyz"[n]}.ts`, "export {};"]));
}

describe.each(Object.keys(CASES))("the rule %s", (rule) => {
  for (const [index, { fails, passes }] of (CASES[rule] ?? []).entries()) {
    test(`finds planted example ${index + 1}, and only that`, () => expect(broken(fails)).toEqual([rule]));
    test(`lets its ordinary neighbour pass, ${index + 1}`, () => expect(broken(passes)).toEqual([]));
  }
});

test("a finding says where it is", () => {
  plant({ [`${SRC}/core/a.ts`]: "export {};\n\n/** Fine. */\nconst MOST_JOBS = 1;\n" });
  expect(check(root)).toEqual([{ rule: "most", file: `${SRC}/core/a.ts`, line: 4, text: "MOST_JOBS: MAX_JOBS" }]);
});

test("old findings are allowed by file and rule, and their counts only go down", () => {
  const file = `${SRC}/core/a.ts`;
  plant({ [file]: "// What is left.\n\n// Who waits.\nexport {};" });
  const two = check(root);
  expect(countsOf(two)).toEqual({ comment: { [file]: 2 } });
  expect(compare(two, { comment: { [file]: 2 } })).toEqual({ fresh: [], lower: [] });
  expect(compare(two, { comment: { [file]: 1 } }).fresh).toHaveLength(2);
  expect(compare(two, {}).fresh).toHaveLength(2);

  plant({ [file]: "// What is left.\nexport {};" });
  expect(compare(check(root), { comment: { [file]: 2 } }).lower).toMatchObject([{ file }]);
});

test("names are taken apart as they are written", () => {
  expect(["readyRows", "READY_ROWS", "ready-rows.test", "HTTPServer", "#ready2"].map(wordsOf)).toEqual([
    ["ready", "rows"],
    ["ready", "rows"],
    ["ready", "rows", "test"],
    ["http", "server"],
    ["ready2"],
  ]);
});
