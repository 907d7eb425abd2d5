import type { Checkup, Pin, TableState } from "../../../core/observe/doctor.js";
import type { CheckupStore } from "../../port/observe/checkup.js";
import { type Db, ms, NOW, statement } from "../connection/db.js";
import { AHEAD, existingMonths, monthOf } from "../schema/partitions.js";
import type { Wakeups } from "../wakeups/wakeups.js";

/**
 * What keeps old row versions. Without the right to read all statistics other users' sessions show nothing but that they
 * are there, and are left out. Vacuum itself holds nothing back.
 */
const PINS = statement(
  "checkup_pins",
  `select 'transaction' as kind, a.pid::text as name, coalesce(a.application_name, '') as application,
     ${ms("clock_timestamp()")} - ${ms("a.xact_start")} as open_for,
     case when a.state like 'idle in transaction%' then ${ms("clock_timestamp()")} - ${ms("a.state_change")} end as idle_for,
     a.backend_xmin is not null or a.backend_xid is not null as holds
   from pg_stat_activity a
   where a.xact_start is not null and a.pid <> pg_backend_pid() and a.backend_type not like 'autovacuum%'
     and (a.datname = current_database() or a.backend_type = 'walsender')
   union all select 'slot', s.slot_name::text, coalesce(s.plugin::text, ''), null, null, true
   from pg_replication_slots s where (s.xmin is not null or s.catalog_xmin is not null) and not s.active
   union all select 'prepared', p.gid, p.owner::text, ${ms("clock_timestamp()")} - ${ms("p.prepared")}, null, true
   from pg_prepared_xacts p where p.database = current_database()`,
);

/** The small ones that work passes through, where old versions cost the most. */
const TABLES = statement(
  "checkup_tables",
  `select t.schemaname || '.' || t.relname as table, t.n_live_tup::float8 as live, t.n_dead_tup::float8 as dead, pg_relation_size(t.relid)::float8 as bytes
   from pg_stat_user_tables t where t.schemaname = $1 and t.relname !~ '^(job|attempt|log)(_|$)' order by 1`,
);

const LEASES = statement(
  "checkup_leases",
  `select ${ms(NOW)} as now, count(l.id)::float8 as leases, coalesce(sum(l.unsettled), 0)::float8 as jobs, coalesce(max(${ms(NOW)} - ${ms("l.until")}), 0)::float8 as longest
   from (select 1) one left join pawl.lease l on l.until <= ${NOW}`,
);

interface PinRow {
  readonly kind: Pin["kind"];
  readonly name: string;
  readonly application: string;
  readonly open_for: number | null;
  readonly idle_for: number | null;
  readonly holds: boolean;
}

interface LeaseRow {
  readonly now: number;
  readonly leases: number;
  readonly jobs: number;
  readonly longest: number;
}

export function postgresCheckup(db: Db, wakeups: Wakeups): CheckupStore {
  return { look: () => look(db, wakeups) };
}

async function look(db: Db, wakeups: Wakeups): Promise<Checkup> {
  const hears = wakeups.receivesItself();
  const pins = await db.query<PinRow>(PINS);
  const tables = await db.query<Record<keyof TableState, string & number>>(TABLES, [db.schema]);
  const [leases] = await db.query<LeaseRow>(LEASES, [db.now()]);
  const { now, ...expired } = leases as LeaseRow;
  const months = new Set(await existingMonths(db));
  return {
    now,
    pins: pins.map(({ kind, name, application, open_for, idle_for, holds }) => ({
      kind,
      name,
      application,
      holds,
      ...(open_for === null ? {} : { openFor: open_for }),
      ...(idle_for === null ? {} : { idleFor: idle_for }),
    })),
    tables,
    // The last one made ahead comes when its time does.
    missingMonths: Array.from({ length: AHEAD }, (_, offset) => monthOf(now, offset).name).filter((name) => !months.has(name)),
    expired,
    hears: await hears,
  };
}
