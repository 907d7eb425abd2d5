import {
  type Breaker,
  type BreakerRule,
  type BreakerState,
  type CountedOutcomes,
  force,
  forgottenAfter,
  newBreaker,
  observe,
  probe,
} from "../../../core/limits/breaker.js";
import { breakerKey, breakerRecord, UNREPORTED_RULE } from "../../port/limits/breaker-record.js";
import type { BreakerRecord, BreakerRef, BreakerReport, BreakerStore } from "../../port/limits/breakers.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { type Db, ms, NOW, statement } from "../connection/db.js";
import { readFor } from "../connection/tenant-role.js";
import type { DriverTransaction } from "../drivers/driver.js";

const COLUMNS = `b.tenant, b.task, b.state, b.forced, b.opening, ${ms("b.since")} as since, ${ms("b.probe_at")} as probe_at, b.step, b.counts::text as counts, b.rule::text as rule, ${ms(NOW)} as now`;

/**
 * Locks them in the order of their names, making those that are missing, and answers as they are under the lock: an
 * update by conflict sees the newest version of a row, whatever its snapshot is.
 */
const TAKE = statement(
  "take_breakers",
  `
   insert into pawl.breaker as b (tenant, task, state, forced, opening, since, counts, rule, until)  -- guard: found-breaker-locked
   select g.tenant, g.task, 'closed', false, 0, ${NOW}, '[]',
     g.rule::json  -- stop: between-breakers
     , ${NOW}
   from unnest($2::text[], $3::text[], $4::text[]) as g(tenant, task, rule)
   order by g.tenant collate "C", g.task collate "C"  -- guard: breakers-in-order
   on conflict (tenant, task)
   do update set forced = b.forced  -- guard: found-breaker-locked
   returning ${COLUMNS}, b.until <= ${NOW} as over  -- guard: found-breaker-locked`,
);

/** The same without making any. */
const LOCK = statement(
  "lock_breakers",
  `select ${COLUMNS}, b.until <= ${NOW} as over from pawl.breaker b
   where (b.tenant, b.task) in (select * from unnest($2::text[], $3::text[]))  -- stop: lock-breakers-snapshot
   order by b.tenant, b.task
   for update  -- guard: breaker-locked`,
);

const WRITE = statement(
  "write_breakers",
  `update pawl.breaker b set state = g.state, forced = g.forced, opening = g.opening, since = to_timestamp(g.since / 1000),
     probe_at = to_timestamp(g.probe_at / 1000), step = g.step, counts = g.counts::json, rule = g.rule::json, until = to_timestamp(g.until / 1000)
   from unnest($1::text[], $2::text[], $3::text[], $4::bool[], $5::int[], $6::float8[], $7::float8[], $8::int[], $9::text[], $10::text[], $11::float8[])
     as g(tenant, task, state, forced, opening, since, probe_at, step, counts, rule, until)
   where b.tenant = g.tenant and b.task = g.task`,
);

/** One that is over is forgotten for everybody who reads; the pruner removes it when it comes by. */
const LIVE = `(b.until is null or b.until > ${NOW})`;
const GET = statement(
  "get_breakers",
  `select ${COLUMNS} from pawl.breaker b where (b.tenant, b.task) in (select * from unnest($2::text[], $3::text[])) and ${LIVE} order by b.tenant, b.task`,
);
const NOT_CLOSED = statement(
  "breakers_not_closed",
  `select ${COLUMNS} from pawl.breaker b where b.state <> 'closed' and ${LIVE} order by b.tenant, b.task`,
);
const LIST = statement(
  "list_breakers",
  `select ${COLUMNS} from pawl.breaker b
   where ${LIVE} and ($2::text is null or b.tenant = $2) and ($3::text is null or b.task = $3) and ($4::text is null or b.state = $4)
     and (b.tenant, b.task) > (coalesce($6::text, ''), coalesce($7::text, ''))
   order by b.tenant, b.task limit $5`,
);

interface BreakerRow {
  readonly tenant: string;
  readonly task: string;
  readonly state: BreakerState;
  readonly forced: boolean;
  readonly opening: number;
  readonly since: number;
  readonly probe_at: number | null;
  readonly step: number | null;
  readonly counts: string;
  readonly rule: string;
  readonly now: number;
}
interface LockedBreakerRow extends BreakerRow {
  /** it is to be forgotten, and is as good as new; null: never */
  readonly over: boolean | null;
}

interface Changed extends BreakerRef {
  readonly breaker: Breaker;
  readonly rule: BreakerRule;
  readonly now: number;
}

/** `onChange`: breakers have come to another state, which workers should hear of. */
export function postgresBreakers(db: Db, onChange: () => void): BreakerStore {
  async function change(
    work: (tx: DriverTransaction) => Promise<{ readonly before: readonly LockedBreakerRow[]; readonly after: readonly Changed[] }>,
  ) {
    const { before, after } = await db.transaction(async (tx) => {
      const changed = await work(tx);
      if (changed.after.length > 0) await tx.query(WRITE, written(changed.after));
      return changed;
    });
    const was = new Map(before.map((row) => [breakerKey(row), `${row.state} ${row.forced}`]));
    if (after.some((row) => was.get(breakerKey(row)) !== `${row.breaker.state} ${row.breaker.forced}`)) onChange();
    return new Map(after.map((row) => [breakerKey(row), breakerRecord(row, row.breaker, row.now)]));
  }

  return {
    async report(reports) {
      if (reports.length === 0) return [];
      const answers = await change((tx) => observeAll(db, tx, reports));
      return reports.map((report) => answers.get(breakerKey(report)) as BreakerRecord);
    },
    async probe(refs) {
      if (refs.length === 0) return [];
      const answers = await change(async (tx) => {
        const before = await tx.query<LockedBreakerRow>(LOCK, [db.now(), ...names(distinct(refs))]);
        const after = before.map(locked).flatMap((row): Changed[] => {
          const leave = probe(row.breaker, row.rule, row.now);
          return leave === undefined ? [] : [{ ...row, breaker: leave }];
        });
        return { before, after };
      });
      return [...answers.values()];
    },
    get: async (refs) => (await db.query<BreakerRow>(GET, [db.now(), ...names(distinct(refs))])).map(recordOf),
    async list({ tenant, task = null, state = null }, { limit, after }) {
      const values = [db.now(), tenant ?? null, task, state, limit, after?.tenant ?? null, after?.task ?? null];
      return (await readFor(db, tenant === undefined ? "everyone" : { tenant }, (on) => on.query<BreakerRow>(LIST, values))).map(recordOf);
    },
    listNotClosed: async () => (await db.query<BreakerRow>(NOT_CLOSED, [db.now()])).map(recordOf),
    async force(ref, how) {
      const answers = await change(async (tx) => {
        const before = await take(db, tx, [{ ...ref, rule: UNREPORTED_RULE }]);
        return { before, after: before.map(locked).map((row) => ({ ...row, breaker: force(row.breaker, how, row.now) })) };
      });
      return answers.get(breakerKey(ref)) as BreakerRecord;
    },
  };
}

/** One after the other, since a pair may be there twice. */
async function observeAll(db: Db, tx: DriverTransaction, reports: readonly BreakerReport[]) {
  const before = await take(db, tx, reports);
  const after = new Map(before.map((row) => [breakerKey(row), locked(row)]));
  for (const report of reports) {
    const { now, breaker } = after.get(breakerKey(report)) as Changed;
    const { tenant, task, rule } = report;
    after.set(breakerKey(report), { tenant, task, rule, now, breaker: observe(breaker, rule, report, now) });
  }
  return { before, after: [...after.values()] };
}

function take(db: Db, tx: DriverTransaction, refs: readonly (BreakerRef & { readonly rule: BreakerRule })[]): Promise<readonly LockedBreakerRow[]> {
  const each = distinct(refs);
  return tx.query<LockedBreakerRow>(TAKE, [db.now(), ...names(each), textArray(each.map(({ rule }) => JSON.stringify(rule)))]);
}

function locked(row: LockedBreakerRow): Changed {
  const { tenant, task, now, over } = row;
  return { tenant, task, now, rule: JSON.parse(row.rule) as BreakerRule, breaker: over === true ? newBreaker(now) : breakerOf(row) };
}

function breakerOf(row: BreakerRow): Breaker {
  const { state, forced, opening, since, probe_at: probeAt, step } = row;
  return {
    state,
    forced,
    opening,
    since,
    counts: JSON.parse(row.counts) as CountedOutcomes[],
    ...(probeAt === null ? {} : { probeAt }),
    ...(step === null ? {} : { limit: step }),
  };
}

function recordOf(row: BreakerRow): BreakerRecord {
  return breakerRecord(row, breakerOf(row), row.now);
}

function written(rows: readonly Changed[]): readonly unknown[] {
  return [
    ...names(rows),
    textArray(rows.map(({ breaker }) => breaker.state)),
    plainArray(rows.map(({ breaker }) => breaker.forced)),
    plainArray(rows.map(({ breaker }) => breaker.opening)),
    plainArray(rows.map(({ breaker }) => breaker.since)),
    plainArray(rows.map(({ breaker }) => breaker.probeAt)),
    plainArray(rows.map(({ breaker }) => breaker.limit)),
    textArray(rows.map(({ breaker }) => JSON.stringify(breaker.counts))),
    textArray(rows.map(({ rule }) => JSON.stringify(rule))),
    plainArray(rows.map(({ breaker, rule, now }) => (breaker.forced ? null : now + forgottenAfter(breaker, rule)))),
  ];
}

function names(refs: readonly BreakerRef[]): readonly [tenants: string, tasks: string] {
  return [textArray(refs.map(({ tenant }) => tenant)), textArray(refs.map(({ task }) => task))];
}

function distinct<R extends BreakerRef>(refs: readonly R[]): readonly R[] {
  return [...new Map(refs.map((ref) => [breakerKey(ref), ref])).values()];
}
