import {
  ACTIVITIES,
  type Activity,
  COUNTED_STATES,
  type CountedState,
  type CountsByState,
  MINUTE_MS,
  type StepSum,
} from "../../../core/observe/series.js";
import type { SeriesAnswer, SeriesQuery, SeriesStore } from "../../port/observe/series.js";
import { type Db, ms, NOW, statement } from "../connection/db.js";

/**
 * What a delta row says of what happened. Moves of one statement are summed in it, so it is told by the signs: a claim makes
 * more jobs run, an enqueue makes more jobs, and what left `running` for `scheduled` will be tried again. Jobs brought back
 * from an export did none of it now.
 */
const ACTIVITY_SQL: Readonly<Record<Activity, string>> = {
  enqueued: "greatest(blocked + scheduled + ready + parked + running + succeeded + dead + cancelled, 0)",
  started: "greatest(running, 0)",
  succeeded: "greatest(succeeded, 0)",
  retried: "case when running < 0 then least(greatest(scheduled, 0), -running) else 0 end",
  died: "greatest(dead, 0)",
  cancelled: "greatest(cancelled, 0)",
};

const COLUMNS = [...ACTIVITIES, ...COUNTED_STATES.map((state) => `${state}_change`)];

/**
 * The part of a fold that keeps the minutes: out of the same deltas as the counts and in the same statement, so a delta is in
 * both or in neither, whoever folds and whoever dies. It stands before the
 * counts, since the last write of a statement is done first: its own rows are locked behind those of the counts.
 */
export function recorded(from: string, at: string): string {
  const values = [
    ...ACTIVITIES.map((activity) => `coalesce(sum(${ACTIVITY_SQL[activity]}) filter (where not restored), 0)`),
    ...COUNTED_STATES.map((state) => `sum(${state})`),
  ];
  return `insert into pawl.series as s (minute, queue, task, ${COLUMNS.join(", ")})
    select floor(extract(epoch from ${at}) / 60)::int, queue, task, ${values.join(", ")} from ${from} group by queue, task order by queue, task
    on conflict (minute, queue, task) do update set ${COLUMNS.map((column) => `${column} = s.${column} + excluded.${column}`).join(", ")}`;
}

const NAMES = { all: "''", queue: "queue", task: "task" } as const;
const ASKED = "($6::text is null or queue = $6) and ($7::text is null or task = $7)";
const STEP = `(${MINUTE_MS} * $5::int)::float8`;

function reading(by: keyof typeof NAMES) {
  const name = NAMES[by];
  const sums = COLUMNS.map((column) => `sum(${column})::float8 as ${column}`).join(", ");
  return statement(
    `read_series_${by}`,
    `
    with ends as (
      select case when $3::float8 is null then floor(${ms(NOW)} / ${STEP}) else ceil($3::float8 / ${STEP}) - 1 end::int as last
    ),
    steps as materialized (select coalesce(floor($2::float8 / ${STEP})::int, last - ceil($4::float8 / ${STEP})::int + 1) as first, last from ends),
    picked as materialized (
      select ${name} as name, least(s.minute / $5::int, steps.last + 1) as step, ${COLUMNS.map((column) => `s.${column}`).join(", ")}
      from steps join pawl.series s on s.minute >= steps.first * $5::int where ${ASKED}
    ),
    current_counts as materialized (
      select ${name} as name, ${COUNTED_STATES.map((state) => `sum(${state}) as ${state}`).join(", ")} from pawl.counter where ${ASKED}
      and (${COUNTED_STATES.map((state) => `${state} <> 0`).join(" or ")}) group by 1
    ),
    named as materialized (
      select name, row_number() over (order by sum(busy) desc, name collate "C") as rank from (
        select name, case when step <= (select last from steps) then enqueued + started else 0 end as busy from picked union all select name, 0 from current_counts
      ) b group by name order by rank limit $8
    )
    select steps.first, steps.last, one.* from steps left join (
      select n.rank, n.name, p.step, ${sums} from picked p join named n on n.name = p.name group by 1, 2, 3
      union all
      select n.rank, n.name, null, ${ACTIVITIES.map(() => "0").join(", ")}, ${COUNTED_STATES.map((state) => `coalesce(s.${state}, 0)::float8`).join(", ")}
      from named n left join current_counts s on s.name = n.name
    ) one on true order by rank, step`,
  );
}

const READ = { all: reading("all"), queue: reading("queue"), task: reading("task") };

type SeriesRow = { first: number; last: number; rank: string | null; name: string; step: number | null } & Record<Activity, number> &
  Record<`${CountedState}_change`, number>;

async function read(db: Db, { from, to, last, step, queue, task, by, limit }: SeriesQuery): Promise<SeriesAnswer> {
  const rows = await db.query<SeriesRow>(READ[by ?? "all"], [db.now(), from ?? null, to ?? null, last, step, queue ?? null, task ?? null, limit]);
  const all = new Map<string, { readonly name?: string; readonly sums: StepSum[]; now: CountsByState }>();
  for (const row of rows) {
    if (row.rank === null) continue;
    let one = all.get(row.name);
    if (one === undefined) {
      one = { ...(by === undefined ? {} : { name: row.name }), sums: [], now: changesOf(row) };
      all.set(row.name, one);
    }
    if (row.step === null) one.now = changesOf(row);
    else one.sums.push({ step: row.step, activities: pick(row, ACTIVITIES), changes: changesOf(row) });
  }
  const [{ first, last: end }] = rows as [SeriesRow];
  return { first, last: end, series: [...all.values()] };
}

function changesOf(row: SeriesRow): CountsByState {
  return Object.fromEntries(COUNTED_STATES.map((state) => [state, row[`${state}_change`]])) as CountsByState;
}

function pick<K extends string>(row: Readonly<Record<K, number>>, keys: readonly K[]): Readonly<Record<K, number>> {
  return Object.fromEntries(keys.map((key) => [key, row[key]])) as Record<K, number>;
}

/** The index by minute is read from its newest end, so that what it costs is bounded by what may stay. */
const TRIM = statement(
  "trim_series",
  `
  with oldest as (select minute from pawl.series order by minute desc offset $3::int - 1 limit 1),
  gone as (
    delete from pawl.series where minute < greatest(floor((${ms(NOW)} - $2::float8) / ${MINUTE_MS})::int, (select minute from oldest)) returning 1
  )
  select count(*)::int as gone from gone`,
);

/** Forgets minutes older than that many ms, and the oldest beyond so many rows. Answers how many rows went. */
export async function trimSeries(db: Db, age: number, most: number): Promise<number> {
  const [row] = await db.query<{ gone: number }>(TRIM, [db.now(), age, most]);
  return row?.gone ?? 0;
}

export function postgresSeries(db: Db): SeriesStore {
  return { read: (query) => read(db, query) };
}
