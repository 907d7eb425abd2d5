import type { JobId } from "../../core/id.js";
import { isFinished } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import { gatesOf } from "../../core/limit.js";
import type { Hint } from "../port.js";
import type { PurgedJobs, PurgeRecord, PurgeStore } from "../port-purges.js";
import { plainArray } from "./arrays.js";
import { dropJobs } from "./control.js";
import { count } from "./counts.js";
import { type Db, ms, NOW, statement } from "./db.js";
import type { Transaction } from "./drivers/driver.js";
import { readFacts } from "./facts.js";
import { take } from "./pending.js";
import { release } from "./release.js";
import { vacate } from "./tickets.js";

/** Held until the other commits, and in a statement of its own, so that the next one sees what the other did. */
const TURN = statement("turn_to_begin_purge", "select pg_advisory_xact_lock(hashtextextended('pawl.purge', 0)) is null as one");
const STANDING = statement("standing_purge", "select id from pawl.purge where tenant = $1 order by asked_at, id limit 1");
const BEGIN = statement("begin_purge", `insert into pawl.purge (id, tenant, asked_at) values ($2::uuid, $3, ${NOW})`);
const COLUMNS = `id, tenant, ${ms("asked_at")} as asked_at`;
const GET = statement("get_purge", `select ${COLUMNS} from pawl.purge where id = $1::uuid`);
const LIST = statement("list_purges", `select ${COLUMNS} from pawl.purge order by asked_at, id`);
const END = statement("end_purge", "delete from pawl.purge where id = $1::uuid");

/** jobs of whomever that one statement looks at */
const LOOKED_AT = 10_000;

/**
 * By the primary key, onward from where the last one ended: there is no index by tenant, so what is looked at is bounded and not
 * what is found. No further than it takes to find enough: `looked` is read as far as it is asked for, in its order.
 */
const NEXT = statement(
  "next_purged",
  `
  with looked as materialized (
    select id, tenant from pawl.any_job where id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000') order by id limit $4
  ),
  mine as materialized (select id from looked where tenant = $1 limit $3),
  last as (
    select id, (select count(*) from looked) = $4::int as more from looked where (select count(*) from mine) < $3::int order by id desc limit 1
  )
  select id, null::uuid as last, false as more from mine union all select null, id, more from last order by id`,
);
/** As a redrive and a prune do: whoever is first has the job. */
const LOCK_DEAD = statement("lock_purged_dead", "select id from pawl.dead where id = any($1::uuid[]) order by id for update");
const UNTIE = statement("untie_purged", "delete from pawl.dependency where child = any($1::uuid[])");
const STOP = statement(
  "stop_purged",
  `insert into pawl.intent as i (job, kind, reason, asked_at) select u.id, 'cancel', 'purged', ${NOW} from unnest($2::uuid[]) as u(id) order by u.id
   on conflict (job) do update set kind = excluded.kind, reason = excluded.reason where i.kind <> 'cancel'`,
);

const gone = (name: string, text: string) => statement(name, `with gone as (${text} returning 1) select count(*)::int as n from gone`);
const ofTenant = (table: string) =>
  gone(`purge_${table}`, `delete from pawl.${table} where ctid = any(array(select ctid from pawl.${table} where tenant = $1 limit $2))`);
const ofGates = (table: string) =>
  gone(`purge_${table}`, `delete from pawl.${table} where ctid = any(array(select ctid from pawl.${table} where key >= $1 and key < $3 limit $2))`);

const OF_TENANT = ["data_key", "request", "batch", "key", "reply", "breaker"].map(ofTenant);
/** Those who deliver to them hear of it by the mark. */
const TARGETS = statement(
  "purge_targets",
  `with gone as (delete from pawl.target where ctid = any(array(select ctid from pawl.target where tenant = $1 limit $2)) returning task),
   secrets as (delete from pawl.target_secret where tenant = $1 and task in (select task from gone)),
   marked as (insert into pawl.policy_mark as m (mark) select 1 where exists (select from gone) on conflict (only_one) do update set mark = m.mark + 1)
   select count(*)::int as n from gone`,
);
const OF_GATES = ["knock", "gate"].map(ofGates);
const API_KEYS = statement(
  "purge_api_keys",
  `with gone as (delete from pawl.api_key where id = any(array(select id from pawl.api_key where tenant = $1 limit $2)) returning id),
   secrets as (delete from pawl.api_secret where key in (select id from gone)),
   marked as (insert into pawl.api_key_mark as m (mark) select 1 where exists (select from gone) on conflict (only_one) do update set mark = m.mark + 1)
   select count(*)::int as n from gone`,
);

interface Row {
  readonly id: string;
  readonly tenant: string;
  readonly asked_at: number;
}

/** One row for each that was found; and, if those are not enough, one for the last that was looked at. */
interface Looked {
  readonly id: JobId | null;
  readonly last: JobId | null;
  /** whether there may be others after the last */
  readonly more: boolean;
}

export function postgresPurges(db: Db, tell: (hint: Hint) => void): PurgeStore {
  return {
    begin: (id, tenant) =>
      db.transaction(async (tx) => {
        await tx.query(TURN);
        const [standing] = await tx.query<{ id: string }>(STANDING, [tenant]);
        if (standing === undefined) await tx.query(BEGIN, [db.now(), id, tenant]);
        return standing?.id ?? id;
      }),
    async get(id) {
      const [row] = await db.query<Row>(GET, [id]);
      return row === undefined ? undefined : recordOf(row);
    },
    list: async () => (await db.query<Row>(LIST)).map(recordOf),
    async jobs(tenant, { limit, after }) {
      const rows = await db.query<Looked>(NEXT, [tenant, after ?? null, limit, LOOKED_AT]);
      const ids = rows.flatMap(({ id }) => id ?? []);
      const { readied, ...report } = await db.transaction((tx) => purge(db, tx, ids));
      if (readied.length > 0) tell({ kind: "ready", lanes: readied });
      if (report.running > 0) tell({ kind: "intent" });
      const next = ids.length === limit ? ids.at(-1) : rows.find(({ more }) => more)?.last;
      return { ...report, ...(next == null ? {} : { next }) };
    },
    async rest(tenant, limit) {
      const { from, to } = gatesOf({ tenant });
      let sum = 0;
      const add = (rows: readonly { readonly n: number }[]) => {
        sum += rows[0]?.n ?? 0;
      };
      add(await db.query<{ n: number }>(API_KEYS, [tenant, limit]));
      add(await db.query<{ n: number }>(TARGETS, [tenant, limit]));
      for (const one of OF_TENANT) add(await db.query<{ n: number }>(one, [tenant, limit]));
      for (const one of OF_GATES) add(await db.query<{ n: number }>(one, [from, limit, to]));
      return sum;
    },
    async end(id) {
      await db.query(END, [id]);
    },
  };
}

/** Those that wait are taken out of where they do, as a cancel would; what a worker took first is asked to stop. */
async function purge(db: Db, tx: Transaction, ids: readonly JobId[]): Promise<PurgedJobs & { readonly readied: readonly Lane[] }> {
  if (ids.length === 0) return { gone: 0, running: 0, readied: [] };
  await tx.query(LOCK_DEAD, [plainArray(ids)]);
  const waiting = await take(tx, ids);
  const taken = new Set(waiting.map(({ id }) => id));
  const others = await readFacts(
    tx,
    ids.filter((id) => !taken.has(id)),
  );
  const finished = others.filter(({ state }) => isFinished(state));
  const held = others.filter(({ state }) => !isFinished(state)).map(({ id }) => id);
  const leaving = [...waiting, ...finished];
  const all = leaving.map(({ id }) => id);
  await tx.query(UNTIE, [plainArray(all)]);
  await vacate(db, tx, all, { finished: true });
  const dropped = await dropJobs(tx, all);
  await count(
    tx,
    leaving.filter(({ id }) => dropped.has(id)).map(({ lane, state }) => ({ lane, from: state, to: undefined })),
  );
  const readied = await release(
    db,
    tx,
    all.map((id) => ({ id, state: "cancelled" })),
  );
  if (held.length > 0) await tx.query(STOP, [db.now(), plainArray(held)]);
  return { gone: dropped.size, running: held.length, readied };
}

function recordOf({ id, tenant, asked_at }: Row): PurgeRecord {
  return { id, tenant, askedAt: asked_at };
}
