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
const LOCK_GATES = statement("lock_gates", "select key from pawl.gate where key = any($1::text[]) order by key for update");
const TAKE_KNOCKS = statement(
  "take_knocks",
  `with gone as (delete from pawl.knock where key = any($1::text[]) returning id, key, rule, paused_until, at)
   select key, rule::text, ${ms("paused_until")} as paused_until, ${ms("at")} as at from gone where rule is not null or paused_until is not null order by id`,
);
const CHANGE_GATES = statement(
  "change_gates",
  `update pawl.gate g set rule = c.rule::json, paused_until = to_timestamp(c.paused_until / 1000)
   from unnest($1::text[], $2::text[], $3::float8[]) as c(key, rule, paused_until) where g.key = c.key`,
);
/** Those that were let in by a rate and have begun wait for no worker any more. */
const FORGET_STARTED = statement(
  "forget_started",
  `delete from pawl.slot s where s.kind = 'rate' and s.key = any($1::text[])
     and not exists (select from pawl.ready r where r.id = s.job) and not exists (select from pawl.suspect u where u.id = s.job)`,
);
const READ_GATES = statement(
  "read_gates",
  `select g.key, g.rule::text, ${ms("g.full_at")} as full_at, ${ms("g.paused_until")} as paused_until, ${ms(NOW)} as now,
     (select count(*) from pawl.slot s where s.kind in ('key', 'serial') and s.key = g.key)::int as held,
     (select count(*) from pawl.slot s where s.kind = 'rate' and s.key = g.key)::int as unstarted
   from pawl.gate g where g.key = any($2::text[]) order by g.key`,
);

interface GateRow {
  readonly key: GateKey;
  readonly rule: string;
  readonly full_at: number | null;
  readonly paused_until: number | null;
  readonly now: number;
  readonly held: number;
  readonly unstarted: number;
}
interface KnockRow {
  readonly key: GateKey;
  readonly rule: string | null;
  readonly paused_until: number | null;
  readonly at: number;
}

/**
 * Locks the gates, takes away what was knocked at them, and reads how they stand. In that order: what a knock stands for
 * was committed with it, so that the last of these statements sees it.
 */
export async function takeKnocks(
  db: Db,
  tx: Transaction,
  keys: readonly GateKey[],
): Promise<{ readonly gates: ReadonlyMap<GateKey, Gate>; readonly now: number }> {
  const asked = textArray(keys);
  await tx.query(MAKE_GATES, [asked]);
  await tx.query(LOCK_GATES, [asked]);
  const knocks = await tx.query<KnockRow>(TAKE_KNOCKS, [asked]);
  let rows = await readGates(db, tx, asked);
  const changed = changedBy(rows, knocks);
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
    await tx.query(FORGET_STARTED, [textArray(rated.map(({ key }) => key))]);
    const counted = new Map((await readGates(db, tx, asked)).map((row) => [row.key, row.unstarted]));
    rows = rows.map((row) => ({ ...row, unstarted: counted.get(row.key) ?? row.unstarted }));
  }
  return { gates: new Map(rows.map((row) => [row.key, gateOf(row)])), now: rows[0]?.now ?? 0 };
}

async function readGates(db: Db, tx: Transaction, asked: string): Promise<readonly GateRow[]> {
  return tx.query<GateRow>(READ_GATES, [db.now(), asked]);
}

/** The newest rule holds. Of pauses the longest, unless one that is over when it is asked for opens the gate. */
function changedBy(rows: readonly GateRow[], knocks: readonly KnockRow[]): readonly GateRow[] {
  return rows.flatMap((row) => {
    let { rule, paused_until } = row;
    for (const knock of knocks) {
      if (knock.key !== row.key) continue;
      if (knock.rule !== null) rule = knock.rule;
      if (knock.paused_until === null) continue;
      paused_until = knock.paused_until <= knock.at ? null : Math.max(paused_until ?? 0, knock.paused_until);
    }
    return rule === row.rule && paused_until === row.paused_until ? [] : [{ ...row, rule, paused_until }];
  });
}

function gateOf(row: GateRow): Gate {
  return {
    rule: JSON.parse(row.rule) as LimitRule,
    held: row.held,
    unstarted: row.unstarted,
    fullAt: row.full_at ?? undefined,
    pausedUntil: row.paused_until ?? undefined,
  };
}
