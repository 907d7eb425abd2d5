import pg from "pg";
import { describe, expect, it } from "vitest";
import * as newer from "../../packages/pawl/src/index.js";
import { readMigrations } from "../../packages/pawl/src/store/postgres/migrate.js";
import { eventually } from "../support/eventually.js";
import { before, type Older } from "../support/last-release.js";
import { type Database, describeOn, freshDatabase } from "../support/servers.js";
import { violations } from "../support/violations.js";

type Library = typeof newer;
const [newest] = readMigrations().slice(-1);
if (newest === undefined) throw new Error("there is no migration");
const NO_HISTORY = "no history of this repository here";

/** One of each kind of work; `side` is whose tasks they are. */
async function enqueueBy({ open }: Library, url: string, side: string): Promise<void> {
  await using pawl = await open(url, { maintenance: false });
  await pawl.enqueue(`${side}.quick`, 1);
  await pawl.enqueueMany(`${side}.quick`, [2, 3, 4, 5, 6]);
  await pawl.enqueue(`${side}.quick`, 7, { delay: 50, key: "one", tenant: "acme", priority: 7 });
  const parent = await pawl.enqueue(`${side}.quick`, 8);
  await pawl.enqueue(`${side}.quick`, 9, { dependsOn: [parent] });
  await pawl.enqueue(`${side}.fails`, 10);
}
const EACH = 10;

async function opened({ open, task }: Library, url: string, served: string): Promise<newer.Pawl> {
  const quick = task(`${served}.quick`, () => {});
  const fails = task(`${served}.fails`, { retry: [20] }, (_input: unknown, ctx) => {
    if (ctx.attempt === 1) throw new Error("once");
  });
  return open(url, { tasks: [quick, fails], maintenance: { pulse: 50, sweep: 100, lease: "2s", prune: 200 } });
}

async function brokenIn({ config }: Database): Promise<readonly string[]> {
  const client = new pg.Client(config);
  await client.connect();
  return violations(client, "quiet").finally(() => client.end());
}

describeOn("embedded18", () => {
  describe("the release before", () => {
    const last = before(newest);

    it.skipIf(last === undefined)(
      last === undefined
        ? `works on the new schema (${NO_HISTORY})`
        : "works on the new schema beside the new one, or is refused, as the migration says",
      async () => {
        using older: Older = last as Older;
        expect(older.knows).toBeLessThan(newest.number);
        const library = await older.load();
        await using database = await freshDatabase();
        // Each serves what the other enqueues.
        await using ours = await opened(newer, database.url, "theirs");
        if (newest.oldest > older.knows) {
          await expect(library.open(database.url)).rejects.toMatchObject({ code: "schema_newer" });
          return;
        }
        await using theirs = await opened(library, database.url, "ours");
        await enqueueBy(newer, database.url, "ours");
        await enqueueBy(library, database.url, "theirs");
        await using _theirWorker = await theirs.work();
        await using _ourWorker = await ours.work();
        for (const [one, other] of [
          [ours, theirs],
          [theirs, ours],
        ] as const) {
          await eventually("all is done, and both count it", async () => (await one.counts()).succeeded === 2 * EACH);
          const { jobs } = await one.jobs.list({ state: "succeeded" }, { limit: 100 });
          expect(jobs).toHaveLength(2 * EACH);
          for (const { id } of jobs) expect((await other.jobs.history(id)).at(-1)).toMatchObject({ outcome: "succeeded" });
        }
        expect(await brokenIn(database)).toEqual([]);
      },
    );
  });

  describe("a release from before a migration that shuts it out", () => {
    // Rows of several jobs: who does not know them would lose the jobs in them.
    const shutOut = readMigrations().find(({ number, oldest }) => oldest === number && number > 5);
    const old = shutOut === undefined ? undefined : before(shutOut);

    it.skipIf(old === undefined)(old === undefined ? `is refused (${NO_HISTORY})` : "is refused, and says what to do", async () => {
      using older: Older = old as Older;
      const { open } = await older.load();
      await using database = await freshDatabase();
      await (await newer.open(database.url, { maintenance: false })).close();
      await expect(open(database.url)).rejects.toMatchObject({ code: "schema_newer" });
    });
  });
});
