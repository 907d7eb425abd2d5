import { firstIdAt, type JobId } from "../../../core/jobs/id.js";
import type { JobState } from "../../../core/jobs/job.js";
import type { Scope } from "../../port/index.js";
import type { JobPageResult, PageRequest, StoredJobFilter } from "../../port/jobs/jobs.js";
import { stateCode } from "../connection/codes.js";
import { type Db, statement } from "../connection/db.js";
import { readFor } from "../connection/tenant-role.js";
import type { Statement } from "../drivers/driver.js";
import { readCauses } from "./dead-groups.js";
import { readFactsWithin, withoutStarted } from "./job-state.js";

/**
 * Jobs that one page looks through at most. There is no index by tenant, queue or tag: that would be one more write for
 * every job there is. So a page walks the ids from where the last one ended, and says how far it came: whoever has few jobs
 * beside others with many gets short pages, and nobody's page costs more than this walk.
 */
const WALKED_JOBS = 50_000;

const TEXT = (column: string, parameter: string) => `(${parameter}::text is null or ${column} = ${parameter})`;
const LANE = (of: string) => `${TEXT(`${of}.tenant`, "$3")} and ${TEXT(`${of}.queue`, "$4")} and ${TEXT(`${of}.task`, "$5")}`;
const LABELS = (of: string) => `($6::text is null or (${of}.options->'tags')::jsonb ? $6) and ($7::text is null or ${of}.options->>'uniqueKey' = $7)`;
const HERE = "id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff') and id >= coalesce($9::uuid, '00000000-0000-0000-0000-000000000000')";

const LAST = "(select a.next from pawl.any_attempt a where a.job = s.id order by a.lease desc limit 1)";
const WAITS = ["ready", "suspect", "scheduled", "parked", "blocked", "dead"]
  .map((table) => `exists (select from pawl.${table} w where w.id = s.id)`)
  .join(" or ");
/** CASE, so that it is asked of a job only when all else fits. */
const endedAs = (state: JobState) => `case when ${WAITS} then false else ${LAST} = ${stateCode(state)} end`;
/** Asked in a statement of its own: a look at the job of each, which is not asked for, costs nothing but makes the planner compile. */
const UNLABELLED = "$6::text is null and $7::text is null";
const OF_JOB = `exists (select from pawl.any_job j where j.id = s.id and ${LABELS("j")})`;
/** Only the dead have died of something. */
const NOT_DEAD = "$8::text is null and $10::text is null";
const OF_DEATH = "($8::text is null or s.kind = $8 or s.name = $8) and ($10::text is null or s.fingerprint = $10)";

interface Source {
  /** what is walked, by id */
  readonly from: string;
  /** what must be true of one of them */
  readonly fits: string;
  /** whether its labels are told by its job alone */
  readonly apart?: true;
}

const ALL = "select id, tenant, queue, task, options from pawl.any_job";
const lane = (table: string) => `select id, tenant, queue, task from pawl.${table}`;
/** Where the ids of a state are found. Those of ready rows of several jobs are in no index: what is not asked for is left out before they are sorted. */
const SOURCES: Readonly<Record<JobState | "any", Source>> = {
  any: { from: ALL, fits: `${LANE("s")} and ${LABELS("s")} and ${NOT_DEAD}` },
  succeeded: { from: ALL, fits: `${LANE("s")} and ${LABELS("s")} and ${NOT_DEAD} and ${endedAs("succeeded")}` },
  cancelled: { from: ALL, fits: `${LANE("s")} and ${LABELS("s")} and ${NOT_DEAD} and ${endedAs("cancelled")}` },
  scheduled: { from: lane("scheduled"), fits: `${LANE("s")} and ${NOT_DEAD}`, apart: true },
  parked: { from: lane("parked"), fits: `${LANE("s")} and ${NOT_DEAD}`, apart: true },
  blocked: { from: lane("blocked"), fits: `${LANE("s")} and ${NOT_DEAD}`, apart: true },
  dead: { from: "select id, tenant, queue, task, kind, name, fingerprint from pawl.dead", fits: `${LANE("s")} and ${OF_DEATH}`, apart: true },
  ready: {
    from: `select u.id from pawl.ready r cross join lateral unnest(coalesce(r.jobs, array[r.id])) as u(id) where ${LANE("r")}
      union all select u.id from pawl.suspect u where ${LANE("u")}`,
    fits: NOT_DEAD,
    apart: true,
  },
  running: {
    from: "select u.id from pawl.lease l cross join lateral unnest(l.jobs) with ordinality as u(id, index) where not u.index::int <@ l.settled",
    fits: `${NOT_DEAD} and exists (select from pawl.any_job j where j.id = s.id and ${LANE("j")} and ${LABELS("j")})`,
  },
};

/** Beside those that fit, the last one that was looked at, where the walk ended before its source did. */
function walk({ from, fits }: Source, more: string): string {
  const all = `${fits} and ${more}`;
  return `
    select s.id, ${all} as fits, s.index = ${WALKED_JOBS} as last from (
      select *, row_number() over (order by id desc) as index from (${from}) f where ${HERE} order by id desc limit ${WALKED_JOBS}
    ) s where s.index = ${WALKED_JOBS} or (${all}) order by s.id desc limit $1`;
}

interface Lists {
  readonly plain: Statement;
  readonly labelled: Statement;
}

const LISTS = new Map<JobState | "any", Lists>(
  Object.entries(SOURCES).map(([state, source]) => {
    const plain = statement(`list_${state}`, walk(source, source.apart ? UNLABELLED : "true"));
    const labelled = source.apart ? statement(`list_labelled_${state}`, walk(source, OF_JOB)) : plain;
    return [state as JobState | "any", { plain, labelled }];
  }),
);

/** Newest due time first, by keyset. */
export async function list(db: Db, scope: Scope, filter: StoredJobFilter, page: PageRequest): Promise<JobPageResult> {
  const { shown, more } = await walked(db, scope, filter, page);
  // A job may have moved on between the two statements: the page shows it as it is now. The walk passes by everybody's jobs, so
  // that it can be bounded, and tells ids alone; what a tenant is shown is read as the tenant's role.
  const { facts, full } = await readFor(db, scope, (on) => readFactsWithin(on, shown, page.bytes ?? Number.POSITIVE_INFINITY));
  const cut = full && facts.at(-1)?.id !== shown.at(-1) ? facts.at(-1)?.id : undefined;
  const next = cut ?? more;
  return { jobs: facts.map(withoutStarted), ...(next === undefined ? {} : { next }) };
}

export interface WalkedPage {
  readonly shown: readonly JobId[];
  /** where the walk goes on, if it does */
  readonly more: JobId | undefined;
}

/** The ids of a page, which anybody of them may have left by now. */
export async function walked(db: Db, scope: Scope, filter: StoredJobFilter, page: Omit<PageRequest, "bytes">): Promise<WalkedPage> {
  const { failure, fingerprint, since, until } = filter;
  if (fingerprint !== undefined) await readCauses(db);
  // Only the dead have died of something: they are few, and looked through alone.
  const state = filter.state ?? (failure === undefined && fingerprint === undefined ? "any" : "dead");
  const { plain, labelled } = LISTS.get(state) as Lists;
  const rows = await db.query<Walked>(filter.tag === undefined && filter.uniqueKey === undefined ? plain : labelled, [
    page.limit + 1,
    earlier(page.after, until === undefined ? undefined : firstIdAt(until)),
    scope === "everyone" ? null : scope.tenant,
    filter.queue ?? null,
    filter.task ?? null,
    filter.tag ?? null,
    filter.uniqueKey ?? null,
    failure ?? null,
    since === undefined ? null : firstIdAt(since),
    fingerprint ?? null,
  ]);
  const fitting = rows.filter((row) => row.fits).map((row) => row.id);
  const shown = fitting.slice(0, page.limit);
  return { shown, more: fitting.length > page.limit ? shown.at(-1) : rows.find((row) => row.last)?.id };
}

interface Walked {
  readonly id: JobId;
  readonly fits: boolean;
  readonly last: boolean;
}

/** Where a page begins: after the last one, and not before what was asked for. */
function earlier(a: JobId | undefined, b: JobId | undefined): JobId | null {
  if (a === undefined || b === undefined) return a ?? b ?? null;
  return a < b ? a : b;
}
