import type { Lane } from "../../../core/jobs/lane.js";
import { plainArray, textArray } from "../connection/arrays.js";
import { type Db, hotStatement, SERVER } from "../connection/db.js";
import { laneOf } from "../jobs/waiting-jobs.js";
import type { PollResult } from "./idle-polls.js";
import type { LaneHead, LaneStarts, NewLane } from "./lane-starts.js";

const LANE = "(r.queue, r.priority, r.tenant, r.task)";

/** The first lane between two others that has rows, and whether it has an admitted section. */
function between(from: string, to: string): string {
  return `select r.queue, r.priority, r.tenant, r.task, r.seq < 0 as admitted_section from pawl.ready r
      where ${LANE} > ${from} and ${LANE} < ${to} order by r.queue, r.priority, r.tenant, r.task, r.seq limit 1`;
}

/** The last number given out; a sequence that has given out none says 1 all the same. */
export const LAST_SEQ = "(select case when is_called then last_value else 0 end from pawl.ready_seq)";

/**
 * Looks for work: the head of every known lane from its bound on, and unknown lanes in the gaps between known ones
 * (a loose index scan that jumps from lane to lane). Both stay inside what can be live, so the cost does not grow
 * with dead rows. $1–$5 and $7: known lanes with bounds; the gaps lie between them, with sentinels at both ends. $6: a number
 * up to which everything was seen: if none was given out since, no lane can be new, and the gaps are left alone. If one was, an id is
 * drawn after it, by which a later look knows that all was seen (see SafeSequence). Lanes have admitted sections only where jobs are under limits.
 */
const READ_LIVE_LANES = hotStatement(
  "claim",
  "live",
  `
  with recursive snapshot as materialized (
    select seq, case when seq <> $6::bigint then pg_current_xact_id()::text end as xact from (select ${LAST_SEQ} as seq offset 0) as read
  ),
  known as materialized (
    select * from unnest($1::text[], $2::int2[], $3::text[], $4::text[], $5::bigint[], $7::bigint[]) with ordinality as k(queue, priority, tenant, task, bound, admitted_section, no)
  ),
  edges as materialized (
    select queue, priority, tenant, task, no from known
    union all select '', -1::int2, '', '', 0
    union all select repeat(chr(1114111), 3), 99::int2, '', '', (select count(*) + 1 from known)
  ),
  gap as materialized (
    select queue as q1, priority as p1, tenant as t1, task as k1,
      lead(queue) over w as q2, lead(priority) over w as p2, lead(tenant) over w as t2, lead(task) over w as k2
    from edges window w as (order by no)
  ),
  walk as (
    select g.q2, g.p2, g.t2, g.k2, f.queue, f.priority, f.tenant, f.task, f.admitted_section from gap g cross join lateral (
      ${between('(g.q1 collate "C", g.p1, g.t1 collate "C", g.k1 collate "C")', '(g.q2 collate "C", g.p2, g.t2 collate "C", g.k2 collate "C")')}
    ) f where g.q2 is not null and (select seq from snapshot) <> $6::bigint
    union all
    select w.q2, w.p2, w.t2, w.k2, f.queue, f.priority, f.tenant, f.task, f.admitted_section from walk w cross join lateral (
      ${between("(w.queue, w.priority, w.tenant, w.task)", '(w.q2 collate "C", w.p2, w.t2 collate "C", w.k2 collate "C")')}
    ) f
  ),
  head as (
    select k.no,
      (select r.seq from pawl.ready r where r.queue = k.queue and r.priority = k.priority and r.tenant = k.tenant and r.task = k.task and r.seq >= k.bound order by r.seq limit 1) as seq,
      case when (select exists (select from pawl.job_limits)) then (select r.seq from pawl.ready r
        where r.queue = k.queue and r.priority = k.priority and r.tenant = k.tenant and r.task = k.task and r.seq >= k.admitted_section and r.seq < 0 order by r.seq limit 1) end as admitted_section
    from known k
  )
  select 'head' as what, no::int, seq::text as a, admitted_section::text as queue, null::int2 as priority, null::text as tenant, null::text as task, null::bool as admitted_section from head
  union all select 'lane', null, null, queue, priority, tenant, task, admitted_section from walk
  union all select 'pause', null, kind, name, null, null, null, null from pawl.pause
  union all (select distinct 'suspect', null::int, null, queue, null::int2, tenant, task, null::bool from pawl.suspect)
  union all select 'policies', null, version::text, null, null, null, null, null from pawl.policy_version
  union all select 'snapshot', null, m.seq::text, pg_snapshot_xmin(s)::text, null, coalesce(m.xact, ''), ${SERVER}, null from snapshot m cross join pg_current_snapshot() s`,
);

interface LiveLaneRow {
  readonly what: "head" | "lane" | "pause" | "suspect" | "policies" | "snapshot";
  readonly no: number | null;
  readonly a: string | null;
  /** of a head: the smallest number of its admitted section, if it has one */
  readonly queue: string;
  readonly priority: Lane["priority"];
  readonly tenant: string;
  readonly task: string;
  readonly admitted_section: boolean;
}

function headOf({ a, queue }: Pick<LiveLaneRow, "a"> & { readonly queue: string | null }): LaneHead {
  return { seq: a === null ? undefined : Number(a), admittedSeq: queue === null ? undefined : Number(queue) };
}

export interface LiveLanesDeps {
  readonly db: Db;
  readonly knownLanes: LaneStarts;
  /** hears which server answered, before its answer counts */
  readonly onServer: (server: string) => void;
}

export async function readLiveLanes(deps: LiveLanesDeps, queues: readonly string[] | undefined, tasks: readonly string[]): Promise<PollResult> {
  const { db, knownLanes, onServer } = deps;
  const listed = knownLanes.list();
  const rows = await db.query<LiveLaneRow>(READ_LIVE_LANES, [
    textArray(listed.map(({ lane }) => lane.queue)),
    plainArray(listed.map(({ lane }) => lane.priority)),
    textArray(listed.map(({ lane }) => lane.tenant)),
    textArray(listed.map(({ lane }) => lane.task)),
    plainArray(listed.map(({ bound }) => bound)),
    knownLanes.seenUpTo,
    plainArray(listed.map(({ admittedBound }) => admittedBound)),
  ]);
  const heads = new Array<LaneHead | undefined>(listed.length).fill(undefined);
  const newLanes: NewLane[] = [];
  const paused = new Set<string>();
  let snapshot: LiveLaneRow | undefined;
  let policies = "0";
  const suspects: LiveLaneRow[] = [];
  for (const row of rows) {
    if (row.what === "head") heads[(row.no as number) - 1] = headOf(row);
    else if (row.what === "lane") newLanes.push({ lane: laneOf(row), hasAdmitted: row.admitted_section });
    else if (row.what === "pause") paused.add(`${row.a}:${row.queue}`);
    else if (row.what === "suspect") suspects.push(row);
    else if (row.what === "policies") policies = row.a as string;
    else snapshot = row;
  }
  const { a: seq, queue: xmin, tenant: xact, task: server } = snapshot as LiveLaneRow;
  onServer(server);
  knownLanes.observe({ heads, listed, newLanes, seq: Number(seq), horizon: { xmin: Number(xmin), xact: xact === "" ? undefined : Number(xact) } });
  const served = new Set(tasks);
  const open = ({ queue, task, tenant }: Omit<Lane, "priority">): boolean =>
    served.has(task) &&
    (queues === undefined || queues.includes(queue)) &&
    !(paused.size > 0 && (paused.has(`queue:${queue}`) || paused.has(`task:${task}`) || paused.has(`tenant:${tenant}`)));
  const lanes = knownLanes.live();
  return {
    live: { lanes: lanes.filter(open), suspects: suspects.some(open), version: policies },
    nothing: lanes.length === 0 && suspects.length === 0,
  };
}
