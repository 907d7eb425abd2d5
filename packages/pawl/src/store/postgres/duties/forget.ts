import { textArray } from "../connection/arrays.js";
import { type Db, NOW, statement } from "../connection/db.js";
import type { Statement } from "../drivers/driver.js";
import { forgetCounters } from "../jobs/counters.js";

/** Forgets what has a time to live that is over, and what nobody needs any more. Answers how much that was. */
export async function forget(db: Db, limit: number): Promise<number> {
  let forgotten = 0;
  for (const one of PAST_THEIR_TIME) forgotten += await inBatches(limit, () => gone(db, one, [db.now(), limit]));
  forgotten += (await forgetCounters(db)) + (await forgetKeys(db, limit));
  return forgotten + (await inBatches(limit, () => forgetLimitKeys(db, limit)));
}

/** Until a batch is not full. */
async function inBatches(limit: number, batch: () => Promise<number>): Promise<number> {
  for (let done = 0; ; ) {
    const count = await batch();
    done += count;
    if (count < limit) return done;
  }
}

async function gone(db: Db, one: Statement, values: readonly unknown[]): Promise<number> {
  const [row] = await db.query<{ n: number }>(one, values);
  return row?.n ?? 0;
}

/** Deletes, and answers how many. */
function forgetting(name: string, deletion: string): Statement {
  return statement(name, `with gone as (${deletion} returning 1) select count(*)::int as n from gone`);
}

/** Whoever renews one meanwhile has it locked, or has made it young again by the time it is locked here. */
const PAST_THEIR_TIME = [
  pastTheirTime("idempotency-keys", "idempotency_key", "tenant, id"),
  pastTheirTime("idempotent-batches", "idempotent_batch", "tenant, id"),
  pastTheirTime("effects", "effect", "job, name"),
  pastTheirTime("breakers", "breaker", "tenant, task"),
  pastTheirTime("idle-workers", "idle_worker", "id"),
  pastTheirTime("replies", "reply", "tenant, credential, key"),
];

function pastTheirTime(what: string, table: string, key: string): Statement {
  const old = `select ${key} from pawl.${table}
     where until <= ${NOW}  -- stop: forget-${what}-snapshot
     limit $2
     for update skip locked  -- guard: forgotten-${what}-locked
    `;
  return forgetting(`forget_${what.replaceAll("-", "_")}`, `delete from pawl.${table} where (${key}) in (${old})`);
}

/** Nobody is there, waits or will come. */
const HAS_ALL_TOKENS = `coalesce(g.full_at, ${NOW}) <= ${NOW}`;
const IS_IDLE = `coalesce(g.paused_until, ${NOW}) <= ${NOW}
  and not exists (select from pawl.slot s where s.kind in ('key', 'serial', 'rate') and s.key = g.key) and not exists (select from pawl.parked p where p.limit_key = g.key)
  and not exists (select from pawl.limit_check k where k.key = g.key)
  and g.key not in (select u.limit_key from pawl.job_limits t cross join lateral unnest(t.limit_keys) as u(limit_key))`;
const IDLE_LIMIT_KEYS = statement(
  "idle_limit_keys",
  `select g.key from pawl.limit_key g
   where ${HAS_ALL_TOKENS}  -- stop: idle-limit-keys-snapshot
     and ${IS_IDLE} limit $2 for update skip locked`,
);
const FORGET_LIMIT_KEYS = statement(
  "forget_limit_keys",
  `delete from pawl.limit_key g where g.key = any($2::text[])
   and  -- guard: idle-is-judged-again
   ${HAS_ALL_TOKENS} and ${IS_IDLE} returning 1 as one`,
);

/**
 * Locked first, then judged by a statement of its own: those who came meanwhile are seen only by that. One that comes
 * afterwards brings a limit check, which makes the limit key again.
 */
function forgetLimitKeys(db: Db, limit: number): Promise<number> {
  return db.transaction(async (tx) => {
    const idle = await tx.query<{ key: string }>(IDLE_LIMIT_KEYS, [db.now(), limit]);
    return idle.length === 0 ? 0 : (await tx.query(FORGET_LIMIT_KEYS, [db.now(), textArray(idle.map(({ key }) => key))])).length;
  });
}

/** A key whose job is finished (or gone) holds nothing, unless its period is not over. */
const PERIOD_IS_OVER = `(k.until is null or k.until <= ${NOW})`;
const HOLDS_NOTHING = `${["ready", "suspect", "scheduled", "parked", "blocked"].map((table) => `not exists (select from pawl.${table} w where w.id = k.job)`).join(" and ")}
  and not exists (select from pawl.lease l where k.job = any(l.jobs))`;
const FORGETTABLE_KEYS = statement(
  "forgettable_keys",
  `select k.tenant, k.task, k.key from pawl.unique_key k
   where ${PERIOD_IS_OVER}  -- stop: forgettable-keys-snapshot
     and ${HOLDS_NOTHING} limit $2
   for update skip locked  -- guard: forgettable-key-locked`,
);
const FORGET_KEYS = statement(
  "forget_keys",
  `delete from pawl.unique_key k using unnest($2::text[], $3::text[], $4::text[]) as g(tenant, task, key)
   where k.tenant = g.tenant and k.task = g.task and k.key = g.key and ${PERIOD_IS_OVER} and ${HOLDS_NOTHING} returning 1 as one`,
);

/** Locked first, then judged by a statement of its own: a job that took the key meanwhile is seen only by that. */
async function forgetKeys(db: Db, limit: number): Promise<number> {
  let forgotten = 0;
  for (;;) {
    const { found, gone } = await db.transaction(async (tx) => {
      const keys = await tx.query<{ tenant: string; task: string; key: string }>(FORGETTABLE_KEYS, [db.now(), limit]);
      if (keys.length === 0) return { found: 0, gone: 0 };
      const rows = await tx.query(FORGET_KEYS, [
        db.now(),
        ...(["tenant", "task", "key"] as const).map((column) => textArray(keys.map((key) => key[column]))),
      ]);
      return { found: keys.length, gone: rows.length };
    });
    forgotten += gone;
    if (found < limit) return forgotten;
  }
}
