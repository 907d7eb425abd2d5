import type { Gate } from "../../core/admission.js";
import type { GateKey, LimitRule } from "../../core/limit.js";
import { plainArray, textArray } from "./arrays.js";
import { type Db, ms, NOW, statement } from "./db.js";
import type { Transaction } from "./drivers/driver.js";

/** In order, as the locks: of two who make the same gates, neither waits for the other in a circle. */
const MAKE_GATES = statement(
  "make_gates",
  `insert into pawl.gate (key, rule)
   select distinct on (k.key) k.key, k.rule from pawl.knock k
   where k.key = any($1::text[]) and k.rule is not null and not exists (select from pawl.gate g where g.key = k.key) order by k.key, k.id desc
   on conflict do nothing`,
);
/** Whoever forgot them held them when they were to be made. */
const GONE_GATES = statement(
  "gone_gates",
  "select from pawl.knock k where k.key = any($1::text[]) and k.rule is not null and not exists (select from pawl.gate g where g.key = k.key) limit 1",
);
const LOCK_GATES = statement("lock_gates", "select key from pawl.gate where key = any($1::text[]) order by key for update");
const CHANGE_GATES = statement(
  "change_gates",
  `update pawl.gate g set rule = c.rule::json, paused_until = to_timestamp(c.paused_until / 1000)
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
/** Takes away what was knocked at the gates. What a knock stands for was committed with it, so that the same snapshot has both. */
const READ_GATES = statement(
  "read_gates",
  `with gone as (delete from pawl.knock where key = any($2::text[]) returning id, key, rule, paused_until, at),
   told as materialized (
     select key, json_agg(json_build_object('rule', rule::text, 'pausedUntil', ${ms("paused_until")}, 'at', ${ms("at")}) order by id)::text as knocks
     from gone where rule is not null or paused_until is not null group by key
   )
   select g.key, g.rule::text, ${ms("g.full_at")} as full_at, ${ms("g.paused_until")} as paused_until, g.closed, ${ms(NOW)} as now,
     (select count(*) from pawl.slot s where s.kind in ('key', 'serial') and s.key = g.key)::int as held,
     (select count(*) from pawl.slot s where s.kind = 'rate' and s.key = g.key)::int as unstarted,
     (select t.knocks from told t where t.key = g.key) as knocks
   from pawl.gate g where g.key = any($2::text[]) order by g.key`,
);

interface GateRow {
  readonly key: GateKey;
  readonly rule: string;
  readonly full_at: number | null;
  readonly paused_until: number | null;
  readonly closed: boolean;
  readonly now: number;
  readonly held: number;
  readonly unstarted: number;
  /** those that bring something, in the order they came */
  readonly knocks: string | null;
}
interface Knock {
  readonly rule: string | null;
  readonly pausedUntil: number | null;
  readonly at: number;
}

export interface Standing {
  readonly gates: ReadonlyMap<GateKey, Gate>;
  readonly now: number;
}

/**
 * Locks the gates, takes away what was knocked at them, and reads how they stand: in a second statement, which sees what was
 * written before the locks were had. Undefined: some are not there, though they are needed. To make them now would be out of
 * order, so whoever asked begins anew.
 */
export async function takeKnocks(db: Db, tx: Transaction, keys: readonly GateKey[], make: boolean): Promise<Standing | undefined> {
  const asked = textArray(keys);
  if (make) await tx.query(MAKE_GATES, [asked]);
  const locked = await tx.query(LOCK_GATES, [asked]);
  if (locked.length < keys.length && (!make || (await tx.query(GONE_GATES, [asked])).length > 0)) return undefined;
  let rows = await tx.query<GateRow>(READ_GATES, [db.now(), asked]);
  const changed = rows.flatMap(changedBy);
  if (changed.length > 0) {
    await tx.query(CHANGE_GATES, [
      textArray(changed.map(({ key }) => key)),
      textArray(changed.map(({ rule }) => rule)),
      plainArray(changed.map((gate) => gate.paused_until)),
    ]);
    rows = rows.map((row) => changed.find(({ key }) => key === row.key) ?? row);
  }
  const rated = rows.filter(({ rule, unstarted }) => unstarted > 0 && (JSON.parse(rule) as LimitRule).rate !== undefined);
  if (rated.length > 0) {
    const begun = await tx.query<{ key: GateKey; started: number }>(FORGET_STARTED, [textArray(rated.map(({ key }) => key))]);
    const started = new Map(begun.map((row) => [row.key, row.started]));
    rows = rows.map((row) => ({ ...row, unstarted: row.unstarted - (started.get(row.key) ?? 0) }));
  }
  return { gates: new Map(rows.map((row) => [row.key, gateOf(row)])), now: rows[0]?.now ?? 0 };
}

/** The newest rule holds. Of pauses the longest, unless one that is over when it is asked for opens the gate. */
function changedBy(row: GateRow): readonly GateRow[] {
  if (row.knocks === null) return [];
  let { rule, paused_until } = row;
  for (const knock of JSON.parse(row.knocks) as readonly Knock[]) {
    if (knock.rule !== null) rule = knock.rule;
    if (knock.pausedUntil === null) continue;
    paused_until = knock.pausedUntil <= knock.at ? null : Math.max(paused_until ?? 0, knock.pausedUntil);
  }
  return rule === row.rule && paused_until === row.paused_until ? [] : [{ ...row, rule, paused_until }];
}

function gateOf(row: GateRow): Gate {
  return {
    rule: JSON.parse(row.rule) as LimitRule,
    held: row.held,
    unstarted: row.unstarted,
    fullAt: row.full_at ?? undefined,
    pausedUntil: row.paused_until ?? undefined,
    closed: row.closed,
  };
}
