import type { ApiKeyFacts } from "../../../core/access/api-key.js";
import type { Grant } from "../../../core/access/roles.js";
import type { ApiKeyChange, ApiKeyStore } from "../../port/access/api-keys.js";
import type { Scope } from "../../port/index.js";
import { textArray } from "../connection/arrays.js";
import { type Db, ms, NOW, statement } from "../connection/db.js";
import { readFor, readInside } from "../connection/tenant-role.js";
import type { DriverTransaction } from "../drivers/driver.js";

const FACTS = `k.id, k.tenant, k.name, k.grants::text, ${ms("k.created_at")} as created_at, ${ms("k.expires_at")} as expires_at,
  ${ms("k.revoked_at")} as revoked_at, ${ms("k.last_used_at")} as last_used_at`;
const IN_SCOPE = (tenant: string) => `(${tenant}::text is null or k.tenant = ${tenant})`;

const CREATE = statement(
  "create_api_key",
  `with made as (
     insert into pawl.api_key (id, tenant, name, grants, created_at, expires_at)
     values ($2, $3, $4, $5::json, ${NOW}, ${NOW} + $7::float8 * interval '1 millisecond') on conflict (id) do nothing returning id
   )
   insert into pawl.api_secret (key, digest, pepper) select id, $6, $8 from made returning key`,
);
const HAS_SECRET = statement("has_api_secret", "select 1 as one from pawl.is_api_secret_valid($1, $2)");
const VERSION = "coalesce((select version from pawl.api_key_version), 0)::text";
/** One statement, so that the version is that of the moment the key was seen. */
const CHECK = statement(
  "check_api_key",
  `select m.version, ${ms(NOW)} as now, s.key is not null as secret, ${ms("s.until")} as until, ${FACTS}
   from (select ${VERSION} as version) m left join pawl.api_key k on k.id = $2
   left join lateral (select k.id as key, g.until from pawl.is_api_secret_valid(k.id, $3) g where g.until is null or g.until > ${NOW}) s on true`,
);
const READ_VERSION = statement("api_key_version", `select ${VERSION} as version`);
const GET = statement("get_api_key", `select ${FACTS} from pawl.api_key k where k.id = $1 and ${IN_SCOPE("$2")}`);
const LIST = statement(
  "list_api_keys",
  `select ${FACTS} from pawl.api_key k where ${IN_SCOPE("$1")}
     and ($2::text is null or (k.created_at, k.id) < (select k.created_at, k.id from pawl.api_key k where k.id = $2 and ${IN_SCOPE("$1")}))
   order by k.created_at desc, k.id desc limit $3`,
);
const LOCK = statement(
  "lock_api_key",
  `select k.revoked_at is not null as revoked from pawl.api_key k where k.id = $1 and ${IN_SCOPE("$2")}
   for update  -- guard: api-key-locked`,
);
/** All but the newest secret go; that one is good until its time; the new one takes its place. */
const ROTATE = statement(
  "rotate_api_key",
  `with gone as (delete from pawl.api_secret where key = $2 and until is not null),
   old as (update pawl.api_secret set until = ${NOW} + $4::float8 * interval '1 millisecond' where key = $2 and until is null)
   insert into pawl.api_secret (key, digest, pepper) values ($2, $3, $5)`,
);
const REVOKE = statement("revoke_api_key", `update pawl.api_key k set revoked_at = coalesce(k.revoked_at, ${NOW}) where k.id = $2`);
const RAISE_VERSION = statement(
  "raise_api_key_version",
  "insert into pawl.api_key_version as m (version) values (1) on conflict (only_one) do update set version = m.version + 1",
);
const PEPPERS = statement(
  "api_key_peppers",
  `select s.pepper, count(*)::int as count from pawl.api_secret s join pawl.api_key k on k.id = s.key
   where s.pepper is not null and s.until is null and k.revoked_at is null and (k.expires_at is null or k.expires_at > ${NOW})
   group by s.pepper order by s.pepper`,
);
const TOUCH = statement("touch_api_keys", `update pawl.api_key set last_used_at = ${NOW} where id = any($2::text[])`);

interface ApiKeyRow {
  readonly id: string;
  readonly tenant: string | null;
  readonly name: string;
  readonly grants: string;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
  readonly last_used_at: number | null;
}
type CheckedRow = { readonly version: string; readonly now: number; readonly secret: boolean; readonly until: number | null } & (
  | ApiKeyRow
  | { readonly id: null }
);

export function postgresApiKeys(db: Db): ApiKeyStore {
  /** The key's row is locked first, so that two rotations come one after the other, and leave two good secrets. */
  const change = (scope: Scope, id: string, how: (tx: DriverTransaction, revoked: boolean) => Promise<"revoked" | undefined>) =>
    db.transaction(async (tx): Promise<ApiKeyChange> => {
      const [locked] = await tx.query<{ revoked: boolean }>(LOCK, [id, tenantOf(scope)]);
      // Nobody changes a key's tenant: what is seen now could be seen before the lock.
      const [seen] = await readInside(db, tx, scope, (on) => on.query<ApiKeyRow>(GET, [id, tenantOf(scope)]));
      if (locked === undefined || seen === undefined) return { kind: "unknown" };
      if ((await how(tx, locked.revoked)) === "revoked") return { kind: "revoked" };
      await tx.query(RAISE_VERSION);
      const [row] = await tx.query<ApiKeyRow>(GET, [id, null]);
      return { kind: "changed", key: factsOf(row as ApiKeyRow) };
    });

  return {
    async create({ id, tenant, name, grants, digest, pepper, expiresIn }) {
      const values = [id, tenant ?? null, name, JSON.stringify(grants), digest, expiresIn ?? null, pepper ?? null];
      const made = await db.query(CREATE, [db.now(), ...values]);
      if (made.length > 0) return "created";
      return (await db.query(HAS_SECRET, [id, digest])).length > 0 ? "created" : "taken";
    },
    async check(id, digest) {
      const [row] = await db.query<CheckedRow>(CHECK, [db.now(), id, digest]);
      const { version, now, secret, until } = row as CheckedRow;
      return {
        version,
        now,
        ...(row === undefined || row.id === null ? {} : { key: factsOf(row) }),
        ...(secret ? { secret: until === null ? {} : { until } } : {}),
      };
    },
    async version() {
      const [row] = await db.query<{ version: string }>(READ_VERSION);
      return row?.version ?? "";
    },
    async get(scope, id) {
      const [row] = await readFor(db, scope, (on) => on.query<ApiKeyRow>(GET, [id, tenantOf(scope)]));
      return row === undefined ? undefined : factsOf(row);
    },
    async list(scope, { limit, after }) {
      return (await readFor(db, scope, (on) => on.query<ApiKeyRow>(LIST, [tenantOf(scope), after ?? null, limit]))).map(factsOf);
    },
    rotate: (scope, id, { digest, pepper, keepOldFor }) =>
      change(scope, id, async (tx, revoked) => {
        if (revoked) return "revoked";
        if ((await tx.query(HAS_SECRET, [id, digest])).length === 0) await tx.query(ROTATE, [db.now(), id, digest, keepOldFor, pepper ?? null]);
        return undefined;
      }),
    revoke: (scope, id) =>
      change(scope, id, async (tx) => {
        await tx.query(REVOKE, [db.now(), id]);
        return undefined;
      }),
    peppers: () => db.query<{ pepper: string; count: number }>(PEPPERS, [db.now()]),
    async touch(ids) {
      if (ids.length > 0) await db.query(TOUCH, [db.now(), textArray([...ids].sort())]);
    },
  };
}

function tenantOf(scope: Scope): string | null {
  return scope === "everyone" ? null : scope.tenant;
}

function factsOf({ id, tenant, name, grants, created_at, expires_at, revoked_at, last_used_at }: ApiKeyRow): ApiKeyFacts {
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
