import type { LimitKeyState } from "../../../core/limits/admission.js";
import type { LimitKeyId, LimitRule } from "../../../core/limits/limit-rule.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { type Db, ms, NOW, statement } from "../connection/db.js";
import type { DriverTransaction } from "../drivers/driver.js";

/** In order, as the locks: of two who make the same limit keys, neither waits for the other in a circle. */
const MAKE_LIMIT_KEYS = statement(
  "make_limit_keys",
  `insert into pawl.limit_key (key, rule)
   select distinct on (k.key) k.key, k.rule from pawl.limit_check k
   where k.key = any($1::text[]) and k.rule is not null and not exists (select from pawl.limit_key g where g.key = k.key) order by k.key, k.id desc
   on conflict do nothing`,
);
/** Whoever forgot them held them when they were to be made. */
const GONE_LIMIT_KEYS = statement(
  "gone_limit_keys",
  `select from pawl.limit_check k where k.key = any($1::text[])
     and k.rule is not null  -- guard: limit-key-can-be-made
     and not exists (select from pawl.limit_key g where g.key = k.key) limit 1`,
);
const LOCK_LIMIT_KEYS = statement(
  "lock_limit_keys",
  `select key from pawl.limit_key where key = any($1::text[]) order by key
  for update  -- guard: limit-key-locked`,
);
const CHANGE_LIMIT_KEYS = statement(
  "change_limit_keys",
  `update pawl.limit_key g set rule = c.rule::json, paused_until = to_timestamp(c.paused_until / 1000)
   from unnest($1::text[], $2::text[], $3::float8[]) as c(key, rule, paused_until) where g.key = c.key`,
);
/** Those that were let in by a rate and have begun wait for no worker any more. */
const FORGET_STARTED = statement(
  "forget_started",
  `with gone as (
     delete from pawl.slot s where s.kind = 'rate' and s.key = any($1::text[])
       and not exists (select from pawl.ready r where r.id = s.job) and not exists (select from pawl.suspect u where u.id = s.job)
     returning s.key
   )
   select key, count(*)::int as started from gone group by key`,
);
/** Takes away the limit checks of the limit keys. What each stands for was committed with it, so that the same snapshot has both. */
const READ_LIMIT_KEYS = statement(
  "read_limit_keys",
  `with gone as (
     delete from pawl.limit_check where key = any($2::text[])  -- guard: limit-checks-are-waited-for
     returning id, key, rule, paused_until, at
   ),
   told as materialized (
     select key, json_agg(json_build_object('rule', rule::text, 'pausedUntil', ${ms("paused_until")}, 'at', ${ms("at")}) order by id)::text as limit_checks
     from gone where rule is not null or paused_until is not null group by key
   )
   select g.key, g.rule::text, ${ms("g.full_at")} as full_at, ${ms("g.paused_until")} as paused_until, g.closed, ${ms(NOW)} as now,
     (select count(*) from pawl.slot s where s.kind in ('key', 'serial') and s.key = g.key)::int as held,
     (select count(*) from pawl.slot s where s.kind = 'rate' and s.key = g.key)::int as unstarted,
     (select t.limit_checks from told t where t.key = g.key) as limit_checks
   from pawl.limit_key g where g.key = any($2::text[]) order by g.key`,
);

interface LockedLimitKeyRow {
  readonly key: LimitKeyId;
  readonly rule: string;
  readonly full_at: number | null;
  readonly paused_until: number | null;
  readonly closed: boolean;
  readonly now: number;
  readonly held: number;
  readonly unstarted: number;
  /** those that bring something, in the order they came */
  readonly limit_checks: string | null;
}
interface LimitCheckRow {
  readonly rule: string | null;
  readonly pausedUntil: number | null;
  readonly at: number;
}

export interface LockedLimitKeys {
  readonly limitKeys: ReadonlyMap<LimitKeyId, LimitKeyState>;
  readonly now: number;
}

/**
 * Locks the limit keys, takes away their limit checks, and reads how they stand: in a second statement, which sees what was
 * written before the locks were had. Undefined: some are not there, though they are needed. To make them now would be out of
 * order, so whoever asked begins anew.
 */
export async function takeLimitChecks(
  db: Db,
  tx: DriverTransaction,
  keys: readonly LimitKeyId[],
  make: boolean,
): Promise<LockedLimitKeys | undefined> {
  const asked = textArray(keys);
  if (make) await tx.query(MAKE_LIMIT_KEYS, [asked]);
  const locked = await tx.query(LOCK_LIMIT_KEYS, [asked]);
  if (locked.length < keys.length && (!make || (await tx.query(GONE_LIMIT_KEYS, [asked])).length > 0)) return undefined;
  let rows = await tx.query<LockedLimitKeyRow>(READ_LIMIT_KEYS, [db.now(), asked]);
  const changed = rows.flatMap(changedBy);
  if (changed.length > 0) {
    await tx.query(CHANGE_LIMIT_KEYS, [
      textArray(changed.map(({ key }) => key)),
      textArray(changed.map(({ rule }) => rule)),
      plainArray(changed.map((limitKey) => limitKey.paused_until)),
    ]);
    rows = rows.map((row) => changed.find(({ key }) => key === row.key) ?? row);
  }
  const rated = rows.filter(({ rule, unstarted }) => unstarted > 0 && (JSON.parse(rule) as LimitRule).rate !== undefined);
  if (rated.length > 0) {
    const begun = await tx.query<{ key: LimitKeyId; started: number }>(FORGET_STARTED, [textArray(rated.map(({ key }) => key))]);
    const started = new Map(begun.map((row) => [row.key, row.started]));
    rows = rows.map((row) => ({ ...row, unstarted: row.unstarted - (started.get(row.key) ?? 0) }));
  }
  return { limitKeys: new Map(rows.map((row) => [row.key, limitKeyOf(row)])), now: rows[0]?.now ?? 0 };
}

/** The newest rule holds. Of pauses the longest, unless one that is over when it is asked for opens the limit key. */
function changedBy(row: LockedLimitKeyRow): readonly LockedLimitKeyRow[] {
  if (row.limit_checks === null) return [];
  let { rule, paused_until } = row;
  for (const limitCheck of JSON.parse(row.limit_checks) as readonly LimitCheckRow[]) {
    if (limitCheck.rule !== null) rule = limitCheck.rule;
    if (limitCheck.pausedUntil === null) continue;
    paused_until = limitCheck.pausedUntil <= limitCheck.at ? null : Math.max(paused_until ?? 0, limitCheck.pausedUntil);
  }
  return rule === row.rule && paused_until === row.paused_until ? [] : [{ ...row, rule, paused_until }];
}

function limitKeyOf(row: LockedLimitKeyRow): LimitKeyState {
  return {
    rule: JSON.parse(row.rule) as LimitRule,
    holders: row.held,
    waitingForWorker: row.unstarted,
    fullAt: row.full_at ?? undefined,
    pausedUntil: row.paused_until ?? undefined,
    closed: row.closed,
  };
}
