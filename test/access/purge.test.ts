import pg from "pg";
import { expect, test } from "vitest";
import { type OpenOptions, open, task } from "../../packages/pawl/src/index.js";
import { serviceOf } from "../../packages/pawl/src/service.js";
import { migratedDatabase } from "../support/servers/servers.js";

const TENANT = "acme-gmbh";
const MARKER = "canary-51c9";
const KEYS = [Buffer.alloc(32, 7).toString("base64")];

/** Names of the tables in which any row, written as text, holds one of the words. */
async function tablesWith(url: string, words: readonly string[]): Promise<readonly string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows: tables } = await client.query(
      "select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'pawl' and c.relkind in ('r', 'p') order by 1",
    );
    const found: string[] = [];
    for (const { name } of tables as { name: string }[]) {
      const { rows } = await client.query(
        `select 1 from ${name} t where ${words.map((_, i) => `position($${i + 1} in t::text) > 0`).join(" or ")} limit 1`,
        [...words],
      );
      if (rows.length > 0) found.push(name.replace("pawl.", ""));
    }
    return found;
  } finally {
    await client.end();
  }
}

const work = task(
  "work",
  { limits: [{ name: "card", key: (input: { card: string }) => input.card, concurrency: 1 }], retry: [] },
  async (input, ctx) => {
    ctx.log.info(`working on ${input.card}`);
    await ctx.once("effect", () => input.card);
    if (input.card.endsWith("!")) throw new Error(`no ${input.card}`);
    return input;
  },
);

const options: OpenOptions = { tasks: [work], apiKeys: { pepper: "a pepper of sixteen bytes or more" } };

/** A tenant that has something of everything. */
async function fill(url: string, more: OpenOptions, bulk = 1_500): Promise<void> {
  await using pawl = await open(url, { ...options, ...more });
  const mine = pawl.forTenant(TENANT);
  await pawl.tenants.update(TENANT, { weight: 2, ingest: { depth: 10_000 } });
  await serviceOf(pawl).apiKeys.create({ name: "x", tenant: TENANT, grants: [{ role: "producer" }] });
  if (more.encryption !== undefined) await mine.targets.put("work", { url: `https://${MARKER}.example/` });
  await mine.schedules.put("nightly", work, { every: "1d", input: { card: MARKER } });
  const worker = await pawl.work();
  for (const card of [MARKER, `${MARKER}!`])
    await pawl.jobs.wait(await mine.enqueue(work, { card }, { unique: card, idempotencyKey: `r ${card}`, tags: [card] }));
  await pawl.jobs.wait(await mine.schedules.trigger("nightly"));
  await worker.stop();
  const parent = await mine.enqueue(work, { card: MARKER });
  await mine.enqueue(work, { card: MARKER }, { dependsOn: [parent] });
  await mine.enqueue(work, { card: MARKER }, { delay: "1h", startWithin: "2h" });
  await mine.enqueueMany("bulk", Array.from({ length: bulk }, () => ({ card: MARKER })) as never);
  await pawl.forTenant("umbrella").enqueue(work, { card: "theirs" });
  await serviceOf(pawl).audit.record({ tenant: TENANT, actor: "somebody", action: "jobs.cancel", outcome: "allowed" });
}

test("S54: a purge leaves nothing of a tenant in any table but the audit log, whose chain holds, and nothing of others is touched", {
  timeout: 180_000,
}, async () => {
  const { url } = await migratedDatabase();
  await fill(url, { allowUnknownTasks: true });
  expect(await tablesWith(url, [TENANT, MARKER])).toEqual(
    expect.arrayContaining(["job", "dead", "schedule", "api_key", "policy", "unique_key", "idempotency_key"]),
  );
  await using pawl = await open(url, options);
  const told: number[] = [];
  const done = await pawl.tenants.purge(TENANT, { onProgress: ({ jobs }) => told.push(jobs) });
  expect(done).toMatchObject({ jobs: 1_506, running: 0 });
  expect(told.length).toBeGreaterThan(3);
  expect(await tablesWith(url, [TENANT, MARKER])).toEqual(["audit", "audit_head"]);
  expect(await serviceOf(pawl).audit.verify()).toMatchObject({ ok: true });
  expect((await pawl.jobs.list()).items).toMatchObject([{ tenant: "umbrella", input: { card: "theirs" } }]);
  expect(await pawl.counts()).toMatchObject({ succeeded: 0, dead: 0, scheduled: 0, blocked: 0 });
  // The name is free again.
  expect(await pawl.tenants.get(TENANT)).toMatchObject({ paused: false, policy: {} });
});

test("a purge that was interrupted is known, and goes on with what is left", { timeout: 180_000 }, async () => {
  const { url } = await migratedDatabase();
  await fill(url, { allowUnknownTasks: true });
  await using pawl = await open(url, options);
  const stop = new AbortController();
  const first = pawl.tenants.purge(TENANT, { signal: stop.signal, onProgress: ({ jobs }) => void (jobs > 0 && stop.abort(new Error("killed"))) });
  await expect(first).rejects.toThrow("killed");
  const [left] = await serviceOf(pawl).purges.list();
  expect(left).toMatchObject({ tenant: TENANT });
  expect((await pawl.jobs.list({ tenant: TENANT })).items).not.toEqual([]);
  await using other = await open(url, options);
  await serviceOf(other).purges.carryOut((left as NonNullable<typeof left>).id);
  expect(await tablesWith(url, [TENANT, MARKER])).toEqual(["audit", "audit_head"]);
});

test("a job that comes after more of others than one statement looks at is purged too", { timeout: 180_000 }, async () => {
  await using database = await migratedDatabase();
  await using pawl = await open(database.url, { allowUnknownTasks: true, maintenance: false });
  await pawl.forTenant("umbrella").enqueueMany("bulk", Array.from({ length: 10_001 }, () => 1) as never, { delay: "1h" });
  await pawl.forTenant(TENANT).enqueue("bulk", 1, { delay: "2h" });
  expect(await pawl.tenants.purge(TENANT)).toMatchObject({ jobs: 1 });
  expect((await pawl.jobs.list({ tenant: TENANT })).items).toEqual([]);
});

test("with encryption, no table ever holds what jobs do (S50)", { timeout: 180_000 }, async () => {
  const { url } = await migratedDatabase();
  const plain = task("work", { retry: [] }, work.handler);
  await using pawl = await open(url, { tasks: [plain], allowUnknownTasks: true, encryption: { masterKeys: KEYS } });
  await pawl.schedules.put("nightly", plain, { every: "1d", input: { card: MARKER } });
  await pawl.work();
  for (const card of [MARKER, `${MARKER}!`]) await pawl.jobs.wait(await pawl.enqueue(plain, { card }));
  await pawl.jobs.wait(await pawl.schedules.trigger("nightly"));
  await pawl.enqueueMany("bulk", Array.from({ length: 1_500 }, () => ({ card: MARKER })) as never);
  expect(await tablesWith(url, [MARKER])).toEqual([]);
  expect((await pawl.jobs.list({ task: "bulk" }, { limit: 1 })).items).toMatchObject([{ input: { card: MARKER } }]);
});

test("an export tells everything of a tenant, and nothing of others", { timeout: 180_000 }, async () => {
  const { url } = await migratedDatabase();
  // Some pages of jobs.
  await fill(url, { allowUnknownTasks: true }, 450);
  await using pawl = await open(url, options);
  const kinds = new Map<string, number>();
  let text = "";
  for await (const entry of pawl.tenants.export(TENANT)) {
    kinds.set(entry.kind, (kinds.get(entry.kind) ?? 0) + 1);
    if (kinds.get("job") !== 200) text += JSON.stringify(entry);
  }
  expect(Object.fromEntries(kinds)).toEqual({ tenant: 1, schedule: 1, breaker: 1, key: 1, audit: 1, job: 456, end: 1 });
  expect(text).toContain(`working on ${MARKER}`);
  expect(text).toContain(`no ${MARKER}!`);
  expect(text).not.toContain("theirs");
});
