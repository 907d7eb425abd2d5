import pg from "pg";
import { expect, test } from "vitest";
import { open, task } from "../../packages/pawl/src/index.js";
import { migratedDatabase } from "../support/servers/servers.js";

const MARKER = "canary-88d1";
const KEYS = [Buffer.alloc(32, 9).toString("base64")];
const seen: string[] = [];
const next = task("next", { retry: [] }, async (input: { card: string }) => void seen.push(input.card));

/** Whether any job or attempt holds it as it is. */
async function isPlain(client: pg.Client, text: string): Promise<boolean> {
  const { rows } = await client.query(
    "select 1 from pawl.job j where position($1 in j::text) > 0 union all select 1 from pawl.history a where position($1 in a::text) > 0",
    [text],
  );
  return rows.length > 0;
}

test("with encryption, what is enqueued and settled in transactions is encrypted, and handlers see it plain", { timeout: 120_000 }, async () => {
  await using database = await migratedDatabase();
  const first = task(
    "first",
    { retry: [] },
    async (input: { card: string }, ctx): Promise<string> =>
      ctx.transaction(async (tx) => {
        await pawl.enqueue(next, { card: `${input.card} by a handler` }, { tx });
        return input.card;
      }),
  );
  await using pawl = await open(database.url, { tasks: [first, next], encryption: { masterKeys: KEYS } });
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    await client.query("begin");
    const job = await pawl.enqueue(first, { card: MARKER }, { tx: client });
    await client.query("commit");
    await pawl.work();
    expect((await pawl.jobs.wait(job)).output).toBe(MARKER);
    const { items: jobs } = await pawl.jobs.list({ task: "next" });
    for (const one of jobs) await pawl.jobs.wait(one);
    expect(seen).toEqual([`${MARKER} by a handler`]);
    expect(await isPlain(client, MARKER)).toBe(false);
  } finally {
    await client.end();
  }
});

test("a transaction that made a tenant's first key holds nobody up, and rolled back it takes the key from nobody", { timeout: 120_000 }, async () => {
  await using database = await migratedDatabase();
  await using pawl = await open(database.url, { tasks: [next], encryption: { masterKeys: KEYS } });
  const mine = pawl.forTenant("newcomer");
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    await client.query("begin");
    for (const card of ["a", "b"]) await mine.enqueue(next, { card }, { tx: client });
    const job = await mine.enqueue(next, { card: "c" });
    await client.query("rollback");
    await using other = await open(database.url, { tasks: [next], encryption: { masterKeys: KEYS } });
    expect((await other.jobs.get(job)).input).toEqual({ card: "c" });
    expect((await other.forTenant("newcomer").jobs.list()).items).toHaveLength(1);
  } finally {
    await client.end();
  }
});
