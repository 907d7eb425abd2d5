import { type AuditLink, canonical, GENESIS, type StoredEntry } from "../../../core/access/audit-entry.js";
import type { AuditFilter, AuditHead, AuditStore } from "../../port/access/audit.js";
import type { Scope } from "../../port/index.js";
import { type Db, ms, NOW, statement } from "../connection/db.js";
import { DriverError } from "../connection/errors.js";
import { readFor } from "../connection/tenant-role.js";
import type { Statement } from "../drivers/driver.js";

/** As `hashedText` and `sha256` do. */
function hashOf(prev: string, seq: string, at: string): string {
  return `encode(sha256(convert_to(${prev} || chr(10) || ${seq} || chr(10) || ${at} || chr(10) || $4::text, 'UTF8')), 'hex')`;
}

const AT = `floor(${ms(NOW)})::bigint`;
const LATER = "greatest(h.at, excluded.at)";
/**
 * The head's row is the lock: who waits for it goes on from what the one before left, since all that is set is computed
 * from the row as it is then. Nothing here may read the chain itself, which is seen as of before the wait.
 */
const RECORD = statement(
  "record_audit",
  `with moved as (
     insert into pawl.audit_head as h (tenant, seq, at, prev, hash) values (
       $2::text  -- stop: record-audit-snapshot
       , 1, ${AT}, '${GENESIS}', ${hashOf(`'${GENESIS}'`, "1", AT)})
     on conflict (tenant) do update set seq = h.seq + 1, at = ${LATER},
       prev = h.hash,  -- guard: audit-head-after-lock
       hash = ${hashOf("h.hash", "(h.seq + 1)", LATER)}
     returning seq, at, prev, hash
   )
   insert into pawl.audit (tenant, seq, at, id, body, prev, hash) select $2, m.seq, m.at, $3::uuid, $4, m.prev, m.hash from moved m
   returning seq::float8, at::float8, prev, hash`,
);
const FIND = statement("find_audit", "select seq::float8, at::float8, prev, hash from pawl.audit where tenant = $1 and id = $2::uuid");
const COLUMNS = "tenant, seq::float8, at::float8, id::text, body, prev, hash";
const FILTERED = ["actor", "action", "outcome", "subject"] as const satisfies readonly (keyof AuditFilter)[];
const lists = new Map<string, Statement>();

/** One statement for each choice of fields: a plan that allows for fields not asked for finds no use for their indexes. */
function listBy(fields: readonly string[]): Statement {
  const name = ["list_audit", ...fields].join("_");
  let cached = lists.get(name);
  if (cached === undefined) {
    cached = statement(
      name,
      `select ${COLUMNS} from pawl.audit a where tenant = $1 and a.seq < $2 and a.at >= $4 and a.at < $5
         ${fields.map((field, index) => `and ${field} = $${6 + index}`).join(" ")} order by a.seq desc limit $3`,
    );
    lists.set(name, cached);
  }
  return cached;
}
const READ = statement("read_audit", `select ${COLUMNS} from pawl.audit a where tenant = $1 and a.seq > $2 order by a.seq limit $3`);
/** Chains without a head are found by steps from tenant to tenant: there may be many entries to each. */
const HEADS = statement(
  "audit_heads",
  `with recursive chain as (
     (select tenant from pawl.audit order by tenant limit 1)
     union all select (select a.tenant from pawl.audit a where a.tenant > c.tenant order by a.tenant limit 1) from chain c where c.tenant is not null
   )
   select tenant, seq::float8, at::float8, hash from pawl.audit_head
   union all select c.tenant, 0, 0, '' from chain c where c.tenant is not null and not exists (select from pawl.audit_head h where h.tenant = c.tenant)
   order by tenant`,
);
/** after every index and every time */
const LAST = Number.MAX_SAFE_INTEGER;
const UNIQUE_VIOLATION = "23505";

type AuditRow = Omit<StoredEntry, "tenant"> & { readonly tenant: string };

export function postgresAudit(db: Db): AuditStore {
  return {
    async record(note) {
      const chain = chainOf(note.tenant);
      try {
        const [link] = await db.query<AuditLink>(RECORD, [db.now(), chain, note.id, canonical(note)]);
        return link as AuditLink;
      } catch (error) {
        // It was recorded before, and only the answer was lost.
        if (!isTaken(error)) throw error;
        const [link] = await db.query<AuditLink>(FIND, [chain, note.id]);
        if (link === undefined) throw error;
        return link;
      }
    },
    async list(tenant, { since, until, ...texts }, { limit, before }) {
      const fields = FILTERED.filter((field) => texts[field] !== undefined);
      const values = [chainOf(tenant), before ?? LAST, limit, since ?? 0, until ?? LAST, ...fields.map((field) => texts[field])];
      return (await readFor(db, scopeOf(tenant), (on) => on.query<AuditRow>(listBy(fields), values))).map(entryOf);
    },
    async read(tenant, { limit, after }) {
      return (await readFor(db, scopeOf(tenant), (on) => on.query<AuditRow>(READ, [chainOf(tenant), after, limit]))).map(entryOf);
    },
    async heads() {
      return (await db.query<AuditRow>(HEADS)).map(
        ({ tenant, seq, at, hash }): AuditHead => ({ tenant: tenant === "" ? undefined : tenant, seq, at, hash }),
      );
    },
  };
}

function chainOf(tenant: string | undefined): string {
  return tenant ?? "";
}

/** The chain of the store as a whole is nobody's. */
function scopeOf(tenant: string | undefined): Scope {
  return tenant === undefined ? "everyone" : { tenant };
}

function entryOf({ tenant, ...rest }: AuditRow): StoredEntry {
  return { ...rest, tenant: tenant === "" ? undefined : tenant };
}

function isTaken(error: unknown): boolean {
  const cause = (error as { cause?: unknown }).cause;
  return cause instanceof DriverError && cause.code === UNIQUE_VIOLATION;
}
