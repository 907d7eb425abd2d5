import type { DataKeyRecord, DataKeyStore } from "../../port/access/data-keys.js";
import { textArray } from "../connection/arrays.js";
import { type Db, insideTransaction, ms, NOW, statement } from "../connection/db.js";

const COLUMNS = `k.id, k.tenant, k.version, k.master, k.wrapped, ${ms("k.created_at")} as created_at`;

const ADD = statement(
  "add_data_key",
  `insert into pawl.data_key (id, tenant, version, master, wrapped, created_at) values ($2, $3, $4, $5, $6, ${NOW})
   on conflict (tenant, version) do nothing`,
);
/** A statement of its own: who was first may have committed after the other began. */
const OF_VERSION = statement("data_key_of_version", `select ${COLUMNS} from pawl.data_key k where k.tenant = $1 and k.version = $2`);
const NEWEST = statement(
  "newest_data_keys",
  `select n.* from unnest($1::text[]) as g(tenant)
   cross join lateral (select ${COLUMNS} from pawl.data_key k where k.tenant = g.tenant order by k.version desc limit 1) n`,
);
const GET = statement("get_data_keys", `select ${COLUMNS} from pawl.data_key k where k.id = any($1::text[])`);
const MASTER_KEYS = statement("master_keys", "select master, count(*)::int as count from pawl.data_key group by master order by master");
const NOT_BY = statement("data_keys_not_by", `select ${COLUMNS} from pawl.data_key k where k.master <> $1 and k.id > $2 order by k.id limit $3`);
const REWRAP = statement("rewrap_data_key", "update pawl.data_key set master = $3, wrapped = $4 where id = $1 and master = $2 returning id");

type DataKeyRow = Omit<DataKeyRecord, "createdAt"> & { readonly created_at: number };

export function postgresDataKeys(db: Db): DataKeyStore {
  return {
    async add({ id, tenant, version, master, wrapped }) {
      for (;;) {
        await db.query(ADD, [db.now(), id, tenant, version, master, wrapped]);
        const [row] = await db.query<DataKeyRow>(OF_VERSION, [tenant, version]);
        // Purged between the two: then the place is free.
        if (row !== undefined) return recordOf(row);
      }
    },
    async newest(tenants, tx) {
      const on = tx === undefined ? db : insideTransaction(tx);
      return (await on.query<DataKeyRow>(NEWEST, [textArray(tenants)])).map(recordOf);
    },
    get: async (ids) => (await db.query<DataKeyRow>(GET, [textArray(ids)])).map(recordOf),
    masterKeys: () => db.query<{ master: string; count: number }>(MASTER_KEYS),
    notBy: async (master, { limit, after = "" }) => (await db.query<DataKeyRow>(NOT_BY, [master, after, limit])).map(recordOf),
    rewrap: async (id, from, { master, wrapped }) => (await db.query(REWRAP, [id, from, master, wrapped])).length > 0,
  };
}

function recordOf({ created_at, ...row }: DataKeyRow): DataKeyRecord {
  return { ...row, createdAt: created_at };
}
