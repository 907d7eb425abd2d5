import type { Lane } from "../../core/lane.js";
import { plainArray, textArray } from "./arrays.js";
import { type Db, hotStatement, SERVER } from "./db.js";
import type { FreshLane, Head, LaneBounds } from "./lane-bounds.js";
import { laneOf } from "./pending.js";
import type { Looked } from "./rest.js";

const LANE = "(r.queue, r.band, r.tenant, r.task)";

/** The first lane between two others that has rows, and whether it has a front. */
function between(from: string, to: string): string {
  return `select r.queue, r.band, r.tenant, r.task, r.seq < 0 as front from pawl.ready r
      where ${LANE} > ${from} and ${LANE} < ${to} order by r.queue, r.band, r.tenant, r.task, r.seq limit 1`;
}

/** The last number given out; a sequence that has given out none says 1 all the same. */
export const LAST_SEQ = "(select case when is_called then last_value else 0 end from pawl.ready_seq)";

/**
 * Looks for work: the head of every known lane from its bound on, and unknown lanes in the gaps between known ones
 * (a loose index scan that jumps from lane to lane). Both stay inside what can be live, so the cost does not grow
 * with dead rows. $1–$5 and $7: known lanes with bounds; the gaps lie between them, with sentinels at both ends. $6: a number
 * up to which everything was seen: if none was given out since, no lane can be new, and the gaps are left alone. If one was, an id is
 * drawn after it, by which a later look knows that all was seen (see SafePoint). Lanes have fronts only where jobs are under limits.
 */
const LIVE = hotStatement(
  "claim",
  "live",
  `
  with recursive mark as materialized (
    select seq, case when seq <> $6::bigint then pg_current_xact_id()::text end as xact from (select ${LAST_SEQ} as seq offset 0) as read
  ),
  known as materialized (
    select * from unnest($1::text[], $2::int2[], $3::text[], $4::text[], $5::bigint[], $7::bigint[]) with ordinality as k(queue, band, tenant, task, bound, front, no)
  ),
  edges as materialized (
    select queue, band, tenant, task, no from known
    union all select '', -1::int2, '', '', 0
    union all select repeat(chr(1114111), 3), 99::int2, '', '', (select count(*) + 1 from known)
  ),
  gap as materialized (
    select queue as q1, band as b1, tenant as t1, task as k1,
      lead(queue) over w as q2, lead(band) over w as b2, lead(tenant) over w as t2, lead(task) over w as k2
    from edges window w as (order by no)
  ),
  walk as (
    select g.q2, g.b2, g.t2, g.k2, f.queue, f.band, f.tenant, f.task, f.front from gap g cross join lateral (
      ${between('(g.q1 collate "C", g.b1, g.t1 collate "C", g.k1 collate "C")', '(g.q2 collate "C", g.b2, g.t2 collate "C", g.k2 collate "C")')}
    ) f where g.q2 is not null and (select seq from mark) <> $6::bigint
    union all
    select w.q2, w.b2, w.t2, w.k2, f.queue, f.band, f.tenant, f.task, f.front from walk w cross join lateral (
      ${between("(w.queue, w.band, w.tenant, w.task)", '(w.q2 collate "C", w.b2, w.t2 collate "C", w.k2 collate "C")')}
    ) f
  ),
  head as (
    select k.no,
      (select r.seq from pawl.ready r where r.queue = k.queue and r.band = k.band and r.tenant = k.tenant and r.task = k.task and r.seq >= k.bound order by r.seq limit 1) as seq,
      case when (select exists (select from pawl.ticket)) then (select r.seq from pawl.ready r
        where r.queue = k.queue and r.band = k.band and r.tenant = k.tenant and r.task = k.task and r.seq >= k.front and r.seq < 0 order by r.seq limit 1) end as front
    from known k
  )
  select 'head' as what, no::int, seq::text as a, front::text as queue, null::int2 as band, null::text as tenant, null::text as task, null::bool as front from head
  union all select 'lane', null, null, queue, band, tenant, task, front from walk
  union all select 'pause', null, kind, name, null, null, null, null from pawl.pause
  union all (select distinct 'suspect', null::int, null, queue, null::int2, tenant, task, null::bool from pawl.suspect)
  union all select 'policies', null, mark::text, null, null, null, null, null from pawl.policy_mark
  union all select 'mark', null, m.seq::text, pg_snapshot_xmin(s)::text, null, coalesce(m.xact, ''), ${SERVER}, null from mark m cross join pg_current_snapshot() s`,
);

interface LiveRow {
  readonly what: "head" | "lane" | "pause" | "suspect" | "policies" | "mark";
  readonly no: number | null;
  readonly a: string | null;
  /** of a head: the smallest number of its front, if it has one */
  readonly queue: string;
  readonly band: Lane["band"];
  readonly tenant: string;
  readonly task: string;
  readonly front: boolean;
}

function headOf({ a, queue }: Pick<LiveRow, "a"> & { readonly queue: string | null }): Head {
  return { seq: a === null ? undefined : Number(a), front: queue === null ? undefined : Number(queue) };
}

export interface LiveParts {
  readonly db: Db;
  readonly bounds: LaneBounds;
  /** hears which server answered, before its answer counts */
  readonly onServer: (server: string) => void;
}

export async function live(parts: LiveParts, queues: readonly string[] | undefined, tasks: readonly string[]): Promise<Looked> {
  const { db, bounds, onServer } = parts;
  const known = bounds.known();
  const rows = await db.query<LiveRow>(LIVE, [
    textArray(known.map(({ lane }) => lane.queue)),
    plainArray(known.map(({ lane }) => lane.band)),
    textArray(known.map(({ lane }) => lane.tenant)),
    textArray(known.map(({ lane }) => lane.task)),
    plainArray(known.map(({ bound }) => bound)),
    bounds.seenUpTo,
    plainArray(known.map(({ front }) => front)),
  ]);
  const heads = new Array<Head | undefined>(known.length).fill(undefined);
  const fresh: FreshLane[] = [];
  const paused = new Set<string>();
  let mark: LiveRow | undefined;
  let policies = "0";
  const suspects: LiveRow[] = [];
  for (const row of rows) {
    if (row.what === "head") heads[(row.no as number) - 1] = headOf(row);
    else if (row.what === "lane") fresh.push({ lane: laneOf(row), front: row.front });
    else if (row.what === "pause") paused.add(`${row.a}:${row.queue}`);
    else if (row.what === "suspect") suspects.push(row);
    else if (row.what === "policies") policies = row.a as string;
    else mark = row;
  }
  const { a: seq, queue: xmin, tenant: xact, task: server } = mark as LiveRow;
  onServer(server);
  bounds.saw({ heads, known, fresh, seq: Number(seq), horizon: { xmin: Number(xmin), xact: xact === "" ? undefined : Number(xact) } });
  const served = new Set(tasks);
  const open = ({ queue, task, tenant }: Omit<Lane, "band">): boolean =>
    served.has(task) &&
    (queues === undefined || queues.includes(queue)) &&
    !(paused.size > 0 && (paused.has(`queue:${queue}`) || paused.has(`task:${task}`) || paused.has(`tenant:${tenant}`)));
  const lanes = bounds.live();
  return {
    live: { lanes: lanes.filter(open), suspects: suspects.some(open), mark: policies },
    nothing: lanes.length === 0 && suspects.length === 0,
  };
}
