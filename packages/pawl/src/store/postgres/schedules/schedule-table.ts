import type { JobId } from "../../../core/jobs/id.js";
import { firstTick } from "../../../core/schedules/due-ticks.js";
import { plannedAt } from "../../../core/schedules/recurrence.js";
import { type Definition, type ScheduleRecord, type ScheduleRef, seedOf } from "../../../core/schedules/schedule.js";
import { afterPut, type StoredDefinition } from "../../../core/schedules/schedule-change.js";
import type { Scope } from "../../port/index.js";
import type { ScheduleFilter, SchedulePage, SchedulePut, SchedulePutAnswer } from "../../port/schedules/schedules.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { type Db, ms, statement } from "../connection/db.js";
import { readFor } from "../connection/tenant-role.js";
import type { DriverTransaction, Queryable } from "../drivers/driver.js";
import { readPartitionRange } from "../schema/partition-range.js";

/** Schedules as such: made, changed, paused, listed. What they do when their time comes is in `tick.ts`. */

const COLUMNS = `s.id::text, s.tenant, s.name, s.definition::text, s.declared::text, s.revision, s.app, array_to_string(s.open, ',') as open,
  ${ms("s.next")} as next, ${ms("s.due_at")} as due_at, ${ms("s.created_at")} as created_at, ${ms("s.changed_at")} as changed_at,
  ${ms("s.undeclared_since")} as undeclared_since, ${ms("s.paused_since")} as paused_since`;

interface ScheduleTableRow {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  readonly definition: string;
  readonly declared: string | null;
  readonly revision: number;
  readonly app: string | null;
  readonly open: string;
  readonly next: number | null;
  readonly due_at: number | null;
  readonly created_at: number;
  readonly changed_at: number;
  readonly undeclared_since: number | null;
  readonly paused_since: number | null;
}

/** A schedule, and what only the store knows of it. */
export interface ScheduleRow {
  readonly id: string;
  readonly record: ScheduleRecord;
  readonly open: readonly JobId[];
}

function rowOf(row: ScheduleTableRow): ScheduleRow {
  const { tenant, name, declared, revision, app, next, due_at, undeclared_since, paused_since } = row;
  const record: ScheduleRecord = {
    tenant,
    name,
    definition: JSON.parse(row.definition) as Definition,
    revision,
    ...(app === null ? {} : { app }),
    ...(declared === null ? {} : { declared: JSON.parse(declared) as Definition }),
    ...(undeclared_since === null ? {} : { undeclaredSince: undeclared_since }),
    ...(paused_since === null ? {} : { pausedSince: paused_since }),
    ...(next === null ? {} : { next }),
    ...(due_at === null ? {} : { looksAt: due_at }),
    createdAt: row.created_at,
    changedAt: row.changed_at,
  };
  return { id: row.id, record, open: row.open === "" ? [] : (row.open.split(",") as JobId[]) };
}

const GET = statement("get_schedule", `select ${COLUMNS} from pawl.schedule s where tenant = $1 and name = $2`);
const LOCK = statement(
  "lock_schedule",
  `select ${COLUMNS} from pawl.schedule s where tenant = $1 and name = $2
  for update  -- guard: schedule-locked`,
);

export async function findSchedule(on: Queryable, { tenant, name }: ScheduleRef): Promise<ScheduleRow | undefined> {
  const [row] = await on.query<ScheduleTableRow>(GET, [tenant, name]);
  return row === undefined ? undefined : rowOf(row);
}

/** Nobody else ticks, changes or removes it before the transaction is over. */
export async function lockSchedule(tx: DriverTransaction, { tenant, name }: ScheduleRef): Promise<ScheduleRow | undefined> {
  const [row] = await tx.query<ScheduleTableRow>(LOCK, [tenant, name]);
  return row === undefined ? undefined : rowOf(row);
}

const LIST = statement(
  "list_schedules",
  `select ${COLUMNS} from pawl.schedule s
   where ($2::text is null or tenant = $2) and (tenant, name) > (coalesce($3::text, ''), coalesce($4::text, ''))
     and ($5::bool is null or (undeclared_since is not null) = $5) and ($6::bool is null or (paused_since is not null) = $6)
   order by tenant, name limit $1`,
);

export async function listSchedules(
  db: Db,
  scope: Scope,
  filter: ScheduleFilter,
  page: { readonly limit: number; readonly after?: ScheduleRef },
): Promise<SchedulePage> {
  const { limit, after } = page;
  const tenant = scope === "everyone" ? null : scope.tenant;
  const values = [limit + 1, tenant, after?.tenant ?? null, after?.name ?? null, filter.undeclared ?? null, filter.paused ?? null];
  const found = (await readFor(db, scope, (on) => on.query<ScheduleTableRow>(LIST, values))).map((row) => rowOf(row).record);
  const schedules = found.slice(0, limit);
  const last = schedules.at(-1);
  return { schedules, ...(found.length > limit && last !== undefined ? { next: { tenant: last.tenant, name: last.name } } : {}) };
}

/** One deploy after the other: of two processes that start at once, the second finds everything as it wants it. */
const LOCK_PUTS = statement(
  "lock_puts",
  `select
  pg_advisory_xact_lock(hashtext('pawl.schedules'))  -- guard: puts-take-turns
  ::text`,
);
const LOCK_MANY = statement(
  "lock_schedules",
  `select ${COLUMNS} from pawl.schedule s join unnest($1::text[], $2::text[]) as g(tenant, name) on s.tenant = g.tenant and s.name = g.name
   order by s.id for update of s`,
);
const PUT_ROWS = `unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bool[], $8::float8[], $9::float8[])
   as g(tenant, name, app, declared, definition, keeps, next, due_at)`;
const INSERT = statement(
  "insert_schedules",
  `insert into pawl.schedule (tenant, name, definition, revision, app, keeps, next, due_at, created_at, changed_at)
   select g.tenant, g.name, g.definition::json, 1, g.app, g.keeps, to_timestamp(g.next / 1000), to_timestamp(g.due_at / 1000), c.now, c.now
   from ${PUT_ROWS}, (select to_timestamp($1::float8 / 1000) as now) c`,
);
const UPDATE = statement(
  "update_schedules",
  `update pawl.schedule s set definition = g.definition::json, declared = g.declared::json, revision = s.revision + 1, app = g.app, keeps = g.keeps,
     undeclared_since = null, next = to_timestamp(g.next / 1000),
     due_at = case when s.paused_since is null then to_timestamp(g.due_at / 1000) end, changed_at = to_timestamp($1::float8 / 1000)
   from ${PUT_ROWS} where s.tenant = g.tenant and s.name = g.name`,
);
const ADOPT = statement(
  "adopt_schedules",
  `update pawl.schedule s set app = g.app, declared = g.declared::json, undeclared_since = null
   from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as g(tenant, name, app, declared) where s.tenant = g.tenant and s.name = g.name
     and (s.undeclared_since is not null or s.app is distinct from g.app or s.declared::text is distinct from g.declared)`,
);
const FLAG = statement(
  "flag_schedules",
  `update pawl.schedule s set undeclared_since = coalesce(undeclared_since, to_timestamp($1::float8 / 1000))
   where app = $2 and not exists (select from unnest($3::text[], $4::text[]) as g(tenant, name) where g.tenant = s.tenant and g.name = s.name)
   returning tenant, name`,
);

export interface PutReport {
  readonly answers: readonly SchedulePutAnswer[];
  readonly missing: readonly ScheduleRef[];
  /** ms until the first of the new ones */
  readonly dueIn?: number;
}

export function putSchedules(db: Db, entries: readonly SchedulePut[], app: string | undefined): Promise<PutReport> {
  return db.transaction(async (tx) => {
    await tx.query(LOCK_PUTS);
    const tenants = textArray(entries.map(({ tenant }) => tenant));
    const names = textArray(entries.map(({ name }) => name));
    const there = new Map((await tx.query<ScheduleTableRow>(LOCK_MANY, [tenants, names])).map((row) => [seedOf(row), rowOf(row)]));
    // After the wait for the locks: a time from before it may be one that the duties no longer look at.
    const { now } = await readPartitionRange(db, tx);
    const outcomes = entries.map((entry) => ({ ...entry, ...afterPut(there.get(seedOf(entry))?.record, entry.definition, app) }));
    const of = (answer: SchedulePutAnswer) => outcomes.filter((one) => one.answer === answer);
    const write = async (which: typeof INSERT, rows: typeof outcomes): Promise<readonly number[]> => {
      if (rows.length === 0) return [];
      const firsts = rows.map((entry) => firstTick(entry.definition, seedOf(entry), now));
      await tx.query(which, [
        now,
        ...ownersOf(rows),
        textArray(rows.map(({ definition }) => JSON.stringify(definition))),
        plainArray(rows.map(({ definition }) => definition.keep !== undefined)),
        plainArray(firsts.map(({ next }) => next)),
        plainArray(firsts.map(({ looksAt }) => looksAt)),
      ]);
      return firsts.flatMap(({ looksAt }) => looksAt ?? []);
    };
    const times = [...(await write(INSERT, of("created"))), ...(await write(UPDATE, of("changed")))];
    const same = of("unchanged");
    if (same.length > 0) await tx.query(ADOPT, ownersOf(same));
    const missing = app === undefined ? [] : await tx.query<{ tenant: string; name: string }>(FLAG, [now, app, tenants, names]);
    const ordered = missing.map(({ tenant, name }) => ({ tenant, name })).sort((a, b) => (seedOf(a) < seedOf(b) ? -1 : 1));
    return {
      answers: outcomes.map(({ answer }) => answer),
      missing: ordered,
      ...(times.length === 0 ? {} : { dueIn: times.reduce((a, b) => Math.min(a, b)) - now }),
    };
  });
}

/** Which schedules, and whose they are: what every write of them begins with. */
function ownersOf(rows: readonly (ScheduleRef & StoredDefinition)[]): readonly string[] {
  return [
    textArray(rows.map(({ tenant }) => tenant)),
    textArray(rows.map(({ name }) => name)),
    textArray(rows.map(({ app }) => app)),
    textArray(rows.map(({ declared }) => declared && JSON.stringify(declared))),
  ];
}

const PAUSE = statement(
  "pause_schedule",
  "update pawl.schedule set paused_since = coalesce(paused_since, to_timestamp($2::float8 / 1000)), due_at = null where id = $1::bigint",
);
const RESUME = statement(
  "resume_schedule",
  "update pawl.schedule set paused_since = null, due_at = to_timestamp($2::float8 / 1000) where id = $1::bigint",
);

/** Takes effect for every tick whose step begins afterwards: the row is locked by both. */
export function pauseSchedule(db: Db, ref: ScheduleRef): Promise<boolean> {
  return db.transaction(async (tx) => {
    const row = await lockSchedule(tx, ref);
    if (row !== undefined) await tx.query(PAUSE, [row.id, (await readPartitionRange(db, tx)).now]);
    return row !== undefined;
  });
}

export function resumeSchedule(db: Db, ref: ScheduleRef): Promise<{ readonly known: boolean; readonly dueIn?: number }> {
  return db.transaction(async (tx) => {
    const row = await lockSchedule(tx, ref);
    if (row === undefined) return { known: false };
    const { next, definition, pausedSince } = row.record;
    if (pausedSince === undefined) return { known: true };
    const { now } = await readPartitionRange(db, tx);
    const looksAt = next === undefined ? undefined : Math.max(now, plannedAt(definition, seedOf(ref), next));
    await tx.query(RESUME, [row.id, looksAt ?? null]);
    return { known: true, ...(looksAt === undefined ? {} : { dueIn: looksAt - now }) };
  });
}

const REMOVE = ["delete from pawl.tick where schedule", "delete from pawl.tick_gap where schedule", "delete from pawl.schedule where id"].map(
  (text, index) => statement(`remove_schedule_${index}`, `${text} = $1::bigint`),
);

export function removeSchedule(db: Db, ref: ScheduleRef): Promise<boolean> {
  return db.transaction(async (tx) => {
    const row = await lockSchedule(tx, ref);
    if (row === undefined) return false;
    for (const one of REMOVE) await tx.query(one, [row.id]);
    return true;
  });
}
