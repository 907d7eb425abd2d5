import { newEpoch } from "../../../runtime/process/identity.js";
import type { EventStore, RecordedBatch, StartedWatch, WatchPeriod } from "../../port/observe/events.js";
import { type Db, ms, NOW, statement } from "../connection/db.js";

/** Past every number that was drawn so far. */
const DRAWN = "(select case when is_called then last_value else 0 end from pawl.event_seq)";

/** Whoever watches first for a while begins anew: nothing was recorded meanwhile, and what was before is of no use. */
const WATCH = statement(
  "watch_events",
  `
  insert into pawl.event_watch as w (epoch, until, forgotten) values ($3, ${NOW} + $2::float8 * interval '1 millisecond', ${DRAWN})
  on conflict (one) do update set
    epoch = case when w.until <= ${NOW} then excluded.epoch else w.epoch end,
    forgotten = case when w.until <= ${NOW} then excluded.forgotten else w.forgotten end,
    until = greatest(w.until, excluded.until)
  returning epoch, ${ms("until")} - ${ms(NOW)} as for, greatest(forgotten, (select max(seq) from pawl.event))::float8 as last`,
);

const WATCHED = statement("watched_events", `select epoch, ${ms("until")} - ${ms(NOW)} as for from pawl.event_watch where until > ${NOW}`);

/**
 * The number is drawn when the lock is held, and the lock is held until the batch can be seen: so batches come to be seen in
 * the order of their numbers, and a reader that goes by them misses none. Each process has one such statement under way.
 */
const APPEND = statement(
  "append_events",
  `
  with turn as materialized (
    select pg_advisory_xact_lock(hashtextextended('pawl.event', 0))  -- guard: events-take-turns
  )
  insert into pawl.event (seq, at, size, entries) select nextval('pawl.event_seq'), ${NOW}, $2::int,
    $3::json  -- stop: events-turn
  from turn`,
);

const READ = statement(
  "read_events",
  `
  select coalesce((select forgotten from pawl.event_watch), 0)::float8 as forgotten, e.seq::float8 as number, e.entries::text as entries
  from (select) one left join lateral (select seq, entries from pawl.event where seq > $1::float8::bigint order by seq limit $2) e on true order by e.seq`,
);

/** What is forgotten is noted in the same step, so that nobody reads on past a hole in good faith. */
const TRIM = statement(
  "trim_events",
  `
  with expired as materialized (
    select max(seq) as last from (select seq, at, sum(size) over (order by seq desc) as total from pawl.event) e
    where total > $3::int or at < ${NOW} - $2::float8 * interval '1 millisecond' or seq <= (select forgotten from pawl.event_watch)
  ),
  noted as (update pawl.event_watch w set forgotten = d.last from expired d where d.last > w.forgotten),
  gone as (delete from pawl.event where seq <= (select last from expired) returning 1)
  select count(*)::int as gone from gone`,
);

/** `changed` is told when somebody begins to watch, `recorded` when there is something to read. */
export function postgresEvents(db: Db, listener: { readonly changed: () => void; readonly recorded: () => void }): EventStore {
  return {
    async watch(duration) {
      const [row] = await db.query<{ epoch: string; for: number; last: number }>(WATCH, [db.now(), duration, newEpoch()]);
      listener.changed();
      return row as StartedWatch;
    },
    async watched() {
      const [row] = await db.query<{ epoch: string; for: number }>(WATCHED, [db.now()]);
      return row satisfies WatchPeriod | undefined;
    },
    async append(entries) {
      await db.query(APPEND, [db.now(), entries.length, `[${entries.join(",")}]`]);
      listener.recorded();
    },
    async read(after, limit) {
      const rows = await db.query<{ forgotten: number; number: number | null; entries: string }>(READ, [after, limit]);
      const batches = rows.flatMap(({ number, entries }): readonly RecordedBatch[] =>
        number === null ? [] : [{ number, entries: (JSON.parse(entries) as readonly unknown[]).map((entry) => JSON.stringify(entry)) }],
      );
      return { forgotten: rows[0]?.forgotten ?? 0, batches };
    },
    async trim(age, most) {
      const [row] = await db.query<{ gone: number }>(TRIM, [db.now(), age, most]);
      return row?.gone ?? 0;
    },
  };
}
