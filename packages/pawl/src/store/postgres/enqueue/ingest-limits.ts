import { compareText } from "../../../core/jobs/lane.js";
import {
  admitIngest,
  counted,
  type Ingest,
  type IngestAdmission,
  type IngestDemand,
  type IngestLimit,
  type IngestState,
  needsCount,
  UNUSED,
  waitingOf,
} from "../../../core/limits/ingest-limit.js";
import { systemClock } from "../../../runtime/time/clock.js";
import type { IngestStore } from "../../port/enqueue/ingest.js";
import type { LowWatermarks } from "../claim/low-watermarks.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { type Db, insideTransaction, ms, NOW, statement } from "../connection/db.js";
import type { Queryable } from "../drivers/driver.js";
import { countDepths } from "./ingest-depth.js";

/** The version and the limits of one snapshot. Unchanged, it is one row. */
const LIMITS = statement(
  "ingest_limits",
  `
  with current as materialized (select coalesce((select version from pawl.policy_version), 0)::text as version)
  select c.version, p.kind, p.name, (p.policy->'ingest')::text as ingest
  from current c left join pawl.policy p on (p.policy->'ingest') is not null and c.version is distinct from $1::text
  order by p.kind, p.name`,
);

interface IngestLimitRow {
  readonly version: string;
  readonly kind: IngestLimit["kind"] | null;
  readonly name: string;
  readonly ingest: string;
}

const COLUMNS = "i.kind, i.name, i.full_at, i.depth::float8, i.since::float8, i.counted_at, i.count_again_at, i.drain";

/**
 * In the order of their names, so that nobody waits in a circle. What a crash takes back are tokens at most, so its
 * commit need not wait for the disk, and those who queue for the row wait less. A transaction of the caller's is left as it is.
 */
const LOCK = statement(
  "lock_ingest",
  `
  with lazily as materialized (select set_config('synchronous_commit', case when $2 then 'off' else current_setting('synchronous_commit') end, true))
  select ${ms(NOW)} as now, ${COLUMNS} from lazily cross join (
    select i.* from pawl.ingest i where (i.kind, i.name) in (select * from unnest($3::text[], $4::text[])) order by i.kind, i.name
    for update  -- guard: ingest-limit-locked
  ) i`,
);
const ENTER = statement(
  "enter_ingest",
  `insert into pawl.ingest (kind, name)
   select
     g.kind  -- stop: between-ingest-limits
     , g.name
   from unnest($1::text[], $2::text[]) as g(kind, name)
   order by g.kind, g.name  -- guard: ingest-limits-in-order
   on conflict do nothing`,
);
const SAVE = statement(
  "save_ingest",
  `update pawl.ingest i set full_at = g.full_at, depth = g.depth, since = g.since, counted_at = g.counted_at, count_again_at = g.count_again_at, drain = g.drain
   from unnest($1::text[], $2::text[], $3::float8[], $4::float8[], $5::float8[], $6::float8[], $7::float8[], $8::float8[])
     as g(kind, name, full_at, depth, since, counted_at, count_again_at, drain)
   where i.kind = g.kind and i.name = g.name`,
);

interface StateRow {
  readonly now: number;
  readonly kind: string;
  readonly name: string;
  readonly full_at: number | null;
  readonly depth: number;
  readonly since: number;
  readonly counted_at: number | null;
  readonly count_again_at: number | null;
  readonly drain: number | null;
}

export function postgresIngest(db: Db, watermarks: LowWatermarks): IngestStore {
  return {
    async limits(version, tx) {
      const rows = await (tx === undefined ? db : insideTransaction(tx)).query<IngestLimitRow>(LIMITS, [version ?? null]);
      const current = rows[0]?.version ?? "0";
      if (current === version) return undefined;
      return {
        version: current,
        limits: rows.flatMap(({ kind, name, ingest }) => (kind === null ? [] : [{ kind, name, ...(JSON.parse(ingest) as Ingest) }])),
      };
    },
    take: (limits, demands, tx) =>
      tx === undefined
        ? db.transaction((own) => take(db, own, watermarks, limits, demands, true))
        : take(db, insideTransaction(tx), watermarks, limits, demands, false),
  };
}

async function take(
  db: Db,
  on: Queryable,
  watermarks: LowWatermarks,
  limits: readonly IngestLimit[],
  demands: readonly IngestDemand[],
  lazily: boolean,
): Promise<readonly IngestAdmission[]> {
  const { now, states: found } = await lock(db, on, limits, lazily);
  const states = await count(on, watermarks, limits, found, demands, now);
  const after = admitIngest(limits, states, demands, now);
  if (after.states.some((state, index) => state !== found[index])) await save(on, limits, after.states);
  return after.admissions;
}

/** Locks what is remembered of each limit. Those that nothing is remembered of are entered first. */
async function lock(
  db: Db,
  on: Queryable,
  limits: readonly IngestLimit[],
  lazily: boolean,
): Promise<{ readonly now: number; readonly states: readonly IngestState[] }> {
  const names = [textArray(limits.map(({ kind }) => kind)), textArray(limits.map(({ name }) => name))];
  let rows = await on.query<StateRow>(LOCK, [db.now(), lazily, ...names]);
  if (rows.length < limits.length) {
    await on.query(ENTER, names);
    rows = await on.query<StateRow>(LOCK, [db.now(), lazily, ...names]);
  }
  const byName = new Map(rows.map((row) => [`${row.kind}\u0001${row.name}`, row]));
  return {
    now: (rows[0] as StateRow).now,
    states: limits.map(({ kind, name }) => {
      const row = byName.get(`${kind}\u0001${name}`);
      return row === undefined ? UNUSED : stateOf(row);
    }),
  };
}

function stateOf(row: StateRow): IngestState {
  return {
    depth: row.depth,
    since: row.since,
    ...(row.full_at === null ? {} : { fullAt: row.full_at }),
    ...(row.counted_at === null ? {} : { countedAt: row.counted_at }),
    ...(row.count_again_at === null ? {} : { countAgainAt: row.count_again_at }),
    ...(row.drain === null ? {} : { drain: row.drain }),
  };
}

/** Counts what may be too deep, in a statement after the lock: it sees all that was stored before. */
async function count(
  on: Queryable,
  watermarks: LowWatermarks,
  limits: readonly IngestLimit[],
  states: readonly IngestState[],
  demands: readonly IngestDemand[],
  now: number,
): Promise<readonly IngestState[]> {
  const demanded = waitingOf(limits, demands);
  const due = limits.filter((limit, index) => needsCount(limit, states[index] as IngestState, demanded[index] as number, now));
  if (due.length === 0) return states;
  const began = systemClock.monotonic();
  const depths = await countDepths(on, watermarks, due);
  const cost = systemClock.monotonic() - began;
  return states.map((state, index) => {
    const depth = depths.get(limits[index] as IngestLimit);
    return depth === undefined ? state : counted(state, depth, now, cost);
  });
}

async function save(on: Queryable, limits: readonly IngestLimit[], states: readonly IngestState[]): Promise<void> {
  const rows = limits
    .map((limit, index) => ({ ...limit, ...(states[index] as IngestState), depth: (states[index] as IngestState).depth }))
    .sort((a, b) => compareText(a.kind, b.kind) || compareText(a.name, b.name));
  await on.query(SAVE, [
    textArray(rows.map(({ kind }) => kind)),
    textArray(rows.map(({ name }) => name)),
    plainArray(rows.map(({ fullAt }) => fullAt)),
    plainArray(rows.map(({ depth }) => depth)),
    plainArray(rows.map(({ since }) => since)),
    plainArray(rows.map(({ countedAt }) => countedAt)),
    plainArray(rows.map(({ countAgainAt }) => countAgainAt)),
    plainArray(rows.map(({ drain }) => drain)),
  ]);
}
