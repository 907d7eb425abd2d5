import type { Grant } from "../../core/access.js";
import type { ApiKeyFacts } from "../../core/api-key.js";
import type { Scope } from "../port.js";
import type { ApiKeyChange, ApiKeyStore } from "../port-keys.js";
import { textArray } from "./arrays.js";
import { type Db, ms, NOW, statement } from "./db.js";
import type { Transaction } from "./drivers/driver.js";
import { readFor, readInside } from "./wall.js";

const FACTS = `k.id, k.tenant, k.name, k.grants::text, ${ms("k.created_at")} as created_at, ${ms("k.expires_at")} as expires_at,
  ${ms("k.revoked_at")} as revoked_at, ${ms("k.last_used_at")} as last_used_at`;
const IN_SCOPE = (tenant: string) => `(${tenant}::text is null or k.tenant = ${tenant})`;

const CREATE = statement(
  "create_api_key",
  `with made as (
     insert into pawl.api_key (id, tenant, name, grants, created_at, expires_at)
     values ($2, $3, $4, $5::json, ${NOW}, ${NOW} + $7::float8 * interval '1 millisecond') on conflict (id) do nothing returning id
   )
   insert into pawl.api_secret (key, digest) select id, $6 from made returning key`,
);
const HAS_SECRET = statement("has_api_secret", "select 1 as one from pawl.api_secret_good($1, $2)");
const MARKED = "coalesce((select mark from pawl.api_key_mark), 0)::text";
/** One statement, so that the mark is that of the moment the key was seen. */
const CHECK = statement(
  "check_api_key",
  `select m.mark, ${ms(NOW)} as now, s.key is not null as secret, ${ms("s.until")} as until, ${FACTS}
   from (select ${MARKED} as mark) m left join pawl.api_key k on k.id = $2
   left join lateral (select k.id as key, g.until from pawl.api_secret_good(k.id, $3) g where g.until is null or g.until > ${NOW}) s on true`,
);
const MARK = statement("api_key_mark", `select ${MARKED} as mark`);
const GET = statement("get_api_key", `select ${FACTS} from pawl.api_key k where k.id = $1 and ${IN_SCOPE("$2")}`);
const LIST = statement(
  "list_api_keys",
  `select ${FACTS} from pawl.api_key k where ${IN_SCOPE("$1")}
     and ($2::text is null or (k.created_at, k.id) < (select k.created_at, k.id from pawl.api_key k where k.id = $2 and ${IN_SCOPE("$1")}))
   order by k.created_at desc, k.id desc limit $3`,
);
const LOCK = statement(
  "lock_api_key",
  `select k.revoked_at is not null as revoked from pawl.api_key k where k.id = $1 and ${IN_SCOPE("$2")} for update`,
);
/** All but the newest secret go; that one is good until its time; the new one takes its place. */
const ROTATE = statement(
  "rotate_api_key",
  `with gone as (delete from pawl.api_secret where key = $2 and until is not null),
   old as (update pawl.api_secret set until = ${NOW} + $4::float8 * interval '1 millisecond' where key = $2 and until is null)
   insert into pawl.api_secret (key, digest) values ($2, $3)`,
);
const REVOKE = statement("revoke_api_key", `update pawl.api_key k set revoked_at = coalesce(k.revoked_at, ${NOW}) where k.id = $2`);
const MOVE_MARK = statement(
  "move_api_key_mark",
  "insert into pawl.api_key_mark as m (mark) values (1) on conflict (only_one) do update set mark = m.mark + 1",
);
const TOUCH = statement("touch_api_keys", `update pawl.api_key set last_used_at = ${NOW} where id = any($2::text[])`);

interface Row {
  readonly id: string;
  readonly tenant: string | null;
  readonly name: string;
  readonly grants: string;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
  readonly last_used_at: number | null;
}
type CheckedRow = { readonly mark: string; readonly now: number; readonly secret: boolean; readonly until: number | null } & (
  | Row
  | { readonly id: null }
);

export function postgresApiKeys(db: Db): ApiKeyStore {
  /** The key's row is locked first, so that two rotations come one after the other, and leave two good secrets. */
  const change = (scope: Scope, id: string, how: (tx: Transaction, revoked: boolean) => Promise<"revoked" | undefined>) =>
    db.transaction(async (tx): Promise<ApiKeyChange> => {
      const [locked] = await tx.query<{ revoked: boolean }>(LOCK, [id, tenantOf(scope)]);
      // Nobody changes a key's tenant: what is seen now could be seen before the lock.
      const [seen] = await readInside(db, tx, scope, (on) => on.query<Row>(GET, [id, tenantOf(scope)]));
      if (locked === undefined || seen === undefined) return { kind: "unknown" };
      if ((await how(tx, locked.revoked)) === "revoked") return { kind: "revoked" };
      await tx.query(MOVE_MARK);
      const [row] = await tx.query<Row>(GET, [id, null]);
      return { kind: "changed", key: factsOf(row as Row) };
    });

  return {
    async create({ id, tenant, name, grants, digest, lasts }) {
      const made = await db.query(CREATE, [db.now(), id, tenant ?? null, name, JSON.stringify(grants), digest, lasts ?? null]);
      if (made.length > 0) return "created";
      return (await db.query(HAS_SECRET, [id, digest])).length > 0 ? "created" : "taken";
    },
    async check(id, digest) {
      const [row] = await db.query<CheckedRow>(CHECK, [db.now(), id, digest]);
      const { mark, now, secret, until } = row as CheckedRow;
      return {
        mark,
        now,
        ...(row === undefined || row.id === null ? {} : { key: factsOf(row) }),
        ...(secret ? { secret: until === null ? {} : { until } } : {}),
      };
    },
    async mark() {
      const [row] = await db.query<{ mark: string }>(MARK);
      return row?.mark ?? "";
    },
    async get(scope, id) {
      const [row] = await readFor(db, scope, (on) => on.query<Row>(GET, [id, tenantOf(scope)]));
      return row === undefined ? undefined : factsOf(row);
    },
    async list(scope, { limit, after }) {
      return (await readFor(db, scope, (on) => on.query<Row>(LIST, [tenantOf(scope), after ?? null, limit]))).map(factsOf);
    },
    rotate: (scope, id, { digest, overlap }) =>
      change(scope, id, async (tx, revoked) => {
        if (revoked) return "revoked";
        if ((await tx.query(HAS_SECRET, [id, digest])).length === 0) await tx.query(ROTATE, [db.now(), id, digest, overlap]);
        return undefined;
      }),
    revoke: (scope, id) =>
      change(scope, id, async (tx) => {
        await tx.query(REVOKE, [db.now(), id]);
        return undefined;
      }),
    async touch(ids) {
      if (ids.length > 0) await db.query(TOUCH, [db.now(), textArray([...ids].sort())]);
    },
  };
}

function tenantOf(scope: Scope): string | null {
  return scope === "everyone" ? null : scope.tenant;
}

function factsOf({ id, tenant, name, grants, created_at, expires_at, revoked_at, last_used_at }: Row): ApiKeyFacts {
  return {
    id,
    name,
    tenant: tenant ?? undefined,
    grants: JSON.parse(grants) as readonly Grant[],
    createdAt: created_at,
    ...(expires_at === null ? {} : { expiresAt: expires_at }),
    ...(revoked_at === null ? {} : { revokedAt: revoked_at }),
    ...(last_used_at === null ? {} : { lastUsedAt: last_used_at }),
  };
}
