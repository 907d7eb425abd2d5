import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { open, type Pawl } from "../packages/pawl/src/index.js";
import { NodeProcess } from "./support/processes/child-process.js";
import { describeOn, freshDatabase } from "./support/servers/servers.js";
import { temporaryFolder } from "./support/temporary-folder.js";

/** Every example, and what it must print; lines in any order, since workers run jobs side by side. */
const EXAMPLES: Readonly<Record<string, readonly (string | RegExp)[]>> = {
  middleware: [
    "[customer.sync acme #1] calling the API for ada",
    "[customer.sync acme #1] answered 429",
    /^\[customer\.sync acme #1\] took \d+ ms$/,
    "[customer.sync acme #2] calling the API for ada",
    "synced ada",
    "[customer.sync acme #1] answered 404",
    "the API will never take this",
  ],
  "dead-letters": [
    '{"amount":"12,50"} is dead after 1: 12,50 is not an amount',
    '{"amount":"flaky"} is dead after 2: no answer at attempt 2',
    "redriven: 2",
    "paid: 1250 and 700",
    "failed: no answer at attempt 1",
    "still dead: 0",
  ],
  "unique-keys": [
    "second: existing, the same job",
    "newer: created, replaced the first",
    "first: cancelled",
    "unique_key_taken: held by the newer one",
    "reminded of 3 items",
    "again: created",
  ],
  dependencies: ["before there is a worker: blocked", "bound 1, 2, 3", "die: dependency", "run: bound 1, dead", "wait: bound 1, 2"],
  schedules: [
    "2027-03-13T07:30:00.000Z",
    "2027-03-14T07:00:00.000Z (moved out of a gap)",
    "2027-03-15T06:30:00.000Z",
    "heartbeat: created",
    "again: unchanged",
    "heartbeat fired: report of all",
    "triggered: report of eu",
    "of 7 ticks, 7 have no job",
    "backfilled: 7, and again: 0",
  ],
  "transactional-enqueue": ["confirmed order 1", "payment of order 2 was declined", "1 order and 1 job are there"],
};

async function check(name: string, store: string): Promise<void> {
  await using child = new NodeProcess(join(inject("built"), `examples/${name}.js`), [store]);
  const code = await child.exit();
  expect({ code, lines: child.lines }).toEqual({
    code: 0,
    lines: expect.arrayContaining((EXAMPLES[name] ?? []).map((line) => (typeof line === "string" ? line : expect.stringMatching(line)))),
  });
}

describe("the example", () => {
  // One folder for all, kept open: the database in it is made and started once.
  const data = temporaryFolder();
  let kept: Pawl;
  beforeAll(async () => {
    kept = await open(data.path, { maintenance: false });
  });
  afterAll(async () => {
    await kept.close();
    data[Symbol.dispose]();
  });

  test.each(Object.keys(EXAMPLES).filter((name) => name !== "transactional-enqueue"))("%s runs on the embedded store", { timeout: 60_000 }, (name) =>
    check(name, data.path),
  );
});

describeOn("embedded18", () => {
  test("the example transactional-enqueue runs on a Postgres of the application's", { timeout: 60_000 }, async () => {
    await using database = await freshDatabase();
    await check("transactional-enqueue", database.url);
  });
});

test("every example is run", () => {
  const files = readdirSync(new URL("../examples", import.meta.url)).filter((file) => file.endsWith(".ts"));
  expect(files.map((file) => file.replace(/\.ts$/, "")).sort()).toEqual(Object.keys(EXAMPLES).sort());
});
