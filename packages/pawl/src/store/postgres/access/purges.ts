import type { PurgeRecord, PurgeStore } from "../../port/access/purges.js";
import { type Db, ms, NOW, statement } from "../connection/db.js";
import { deleteCounted, deletingOfTenant } from "./delete-of-tenant.js";

/** Held until the other commits, and in a statement of its own, so that the next one sees what the other did. */
const LOCK_PURGES = statement("turn_to_begin_purge", "select pg_advisory_xact_lock(hashtextextended('pawl.purge', 0)) is null as one");
const UNFINISHED = statement("unfinished_purge", "select id from pawl.purge where tenant = $1 order by requested_at, id limit 1");
const BEGIN = statement("begin_purge", `insert into pawl.purge (id, tenant, requested_at) values ($2::uuid, $3, ${NOW})`);
const COLUMNS = `id, tenant, ${ms("requested_at")} as requested_at`;
const GET = statement("get_purge", `select ${COLUMNS} from pawl.purge where id = $1::uuid`);
const LIST = statement("list_purges", `select ${COLUMNS} from pawl.purge order by requested_at, id`);
const END = statement("end_purge", "delete from pawl.purge where id = $1::uuid");

const OF_TENANT = ["data_key", "reply"].map(deletingOfTenant);
const API_KEYS = statement(
  "purge_api_keys",
  `with gone as (delete from pawl.api_key where id = any(array(select id from pawl.api_key where tenant = $1 limit $2)) returning id),
   secrets as (delete from pawl.api_secret where key in (select id from gone)),
   raised as (insert into pawl.api_key_version as m (version) select 1 where exists (select from gone) on conflict (only_one) do update set version = m.version + 1)
   select count(*)::int as n from gone`,
);

interface PurgeRow {
  readonly id: string;
  readonly tenant: string;
  readonly requested_at: number;
}

export function postgresPurges(db: Db): PurgeStore {
  return {
    begin: (id, tenant) =>
      db.transaction(async (tx) => {
        await tx.query(LOCK_PURGES);
        const [unfinished] = await tx.query<{ id: string }>(UNFINISHED, [tenant]);
        if (unfinished === undefined) await tx.query(BEGIN, [db.now(), id, tenant]);
        return unfinished?.id ?? id;
      }),
    async get(id) {
      const [row] = await db.query<PurgeRow>(GET, [id]);
      return row === undefined ? undefined : recordOf(row);
    },
    list: async () => (await db.query<PurgeRow>(LIST)).map(recordOf),
    async rest(tenant, limit) {
      let sum = await deleteCounted(db, API_KEYS, [tenant, limit]);
      for (const one of OF_TENANT) sum += await deleteCounted(db, one, [tenant, limit]);
      return sum;
    },
    async end(id) {
      await db.query(END, [id]);
    },
  };
}

function recordOf({ id, tenant, requested_at }: PurgeRow): PurgeRecord {
  return { id, tenant, askedAt: requested_at };
}
