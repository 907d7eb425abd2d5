import { dueTimeOf, type JobId } from "../../../core/jobs/id.js";
import type { ParkReason } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import type { StartRate } from "../../../core/limits/start-rate.js";
import type { Parent } from "../../../core/observe/explain.js";
import type { ExplainStore, JobLook, LongestWait } from "../../port/observe/explain.js";
import { MAX_AHEAD, MAX_COUNTED, MAX_PARENTS } from "../../port/observe/explain.js";
import type { LaneStarts } from "../claim/lane-starts.js";
import type { LowWatermarks } from "../claim/low-watermarks.js";
import { type Db, ms, NOW, statement } from "../connection/db.js";
import { SEQ_STEP } from "../connection/sql-constants.js";
import { readFor } from "../connection/tenant-role.js";
import type { Queryable } from "../drivers/driver.js";
import { countDepths } from "../enqueue/ingest-depth.js";
import { readFacts } from "../jobs/job-state.js";
import { find } from "../jobs/read.js";
import { type LaneLimitRow, limitStateOf } from "../limits/lane-limit-row.js";
import { keyHolders } from "../limits/limit-key-holders.js";
import { heads, lanesOf } from "./explain-lanes.js";

/** Of a lane: how many jobs are before one, in its admitted section and then in the rest, and whether there are more rows of them than are counted. */
const LINE = statement(
  "explain_line",
  `
  with own as materialized (
    select coalesce(
      (select r.seq from pawl.ready r where r.id = $1::uuid),
      (select r.seq + array_position(r.jobs, $1::uuid) - 1 from pawl.any_job j cross join lateral (
        select r.seq, r.jobs from pawl.ready r
        where r.queue = j.queue and r.priority = j.priority and r.tenant = j.tenant and r.task = j.task and r.seq > j.home - ${SEQ_STEP} and r.seq <= j.home
          and $1::uuid = any(r.jobs) limit 1
      ) r where j.id = $1::uuid)
    ) as seq
  ),
  before as materialized (
    select r.seq, r.size from (values ($7::bigint, least((select seq from own), 0)), ($6::bigint, coalesce((select seq from own), 9223372036854775807))) as s(low, below)
    cross join lateral (
      select r.seq, r.size from pawl.ready r where r.queue = $2 and r.priority = $3 and r.tenant = $4 and r.task = $5 and r.seq >= s.low and r.seq < s.below
      order by r.seq limit ${MAX_AHEAD} + 1
    ) r limit ${MAX_AHEAD} + 1
  )
  select (select coalesce(sum(least(b.size, (select seq from own) - b.seq)), 0)::float8 from (select * from before limit ${MAX_AHEAD}) b) as ahead,
    (select count(*) > ${MAX_AHEAD} from before) as more`,
);

/** What else decides: who holds it, how fast its queue and task start, how the limits on its lane stand. */
const AROUND = statement(
  "explain_around",
  `
  select ${ms(NOW)} as now,
    exists (select from pawl.suspect u where u.id = $2::uuid) as suspect,
    (select row_to_json(h)::text from (
      select w.name as worker, ${ms("l.claimed_at")} as since, ${ms("l.until")} as until
      from pawl.lease l join pawl.worker w on w.id = l.worker where $6 and $2::uuid = any(l.jobs) order by l.id desc limit 1
    ) h) as holder,
    (select row_to_json(t)::text from (
      select t.starts, ${ms("t.starts_at")} as at, ${ms("t.starts_since")} as since from pawl.counter t where t.queue = $3 and t.task = $4 and t.starts_at is not null
    ) t) as pace,
    (select json_agg(c)::text from (
      select k.kind, k.name, k.concurrency, k.rate_limit, k.rate_per, k.rate_burst, k.tat, (
        select count(*) from (select from pawl.slot s where s.kind = k.kind and s.key = k.name limit coalesce(k.concurrency, 0)) s
      ) as used
      from pawl.lane_limit k where (k.kind, k.name) in (('queue', $3::text), ('task', $4::text), ('tenant', $5::text)) order by k.kind
    ) c) as limits`,
);

interface AroundRow {
  readonly now: number;
  readonly suspect: boolean;
  readonly holder: string | null;
  readonly pace: string | null;
  readonly limits: string | null;
}

export function postgresExplain(db: Db, knownLanes: LaneStarts, watermarks: LowWatermarks): ExplainStore {
  return {
    async look(scope, id) {
      const facts = await readFor(db, scope, (on) => find(on, scope, id));
      if (facts === undefined) return undefined;
      const { started: _, ...job } = facts;
      const { lane, state } = job;
      const parameters = [db.now(), id, lane.queue, lane.task, lane.tenant, state === "running"];
      // What is around it (limits, pace, the lanes beside its own) is not the tenant's, and told in sums.
      const [[around], line, rivals, parents, holders] = await Promise.all([
        db.query<AroundRow>(AROUND, parameters),
        readFor(db, scope, (on) => ahead(on, knownLanes, id, lane)),
        rivalsOf(db, lane),
        readFor(db, scope, (on) => parentsOf(on, job.waitsFor ?? [])),
        keyHolders(db, scope, job),
      ]);
      const { now, suspect, holder, pace, limits } = around as AroundRow;
      return {
        now,
        job,
        ...(holder === null ? {} : { holder: JSON.parse(holder) as NonNullable<JobLook["holder"]> }),
        parents,
        slotHolders: holders,
        suspect,
        ...line,
        rivals,
        ...(pace === null ? {} : { startRate: JSON.parse(pace) as StartRate }),
        limits: ((limits === null ? [] : JSON.parse(limits)) as readonly (LaneLimitRow & { used: number })[]).map((row) =>
          limitStateOf(row, row.used),
        ),
      };
    },
    async waits(lanes) {
      const [{ now }] = (await db.query<{ now: number }>(CLOCK, [db.now()])) as [{ now: number }];
      return longest(await heads(db, lanes), now);
    },
    parked: () => db.query<{ reason: ParkReason; count: number }>(PARKED),
    async depths(tenants) {
      const limits = tenants.map((name) => ({ kind: "tenant" as const, name, depth: MAX_COUNTED }));
      const depths = await countDepths(db, watermarks, limits);
      return limits.map((limit) => ({ tenant: limit.name, depth: depths.get(limit) ?? 0 }));
    },
  };
}

/** Rows of the table as they come: how many there are in all is known from the counters. */
const PARKED = statement(
  "explain_parked",
  `select reason, count(*)::int as count from (select reason from pawl.parked limit ${MAX_COUNTED}) p group by reason order by reason`,
);

const CLOCK = statement("explain_clock", `select ${ms(NOW)} as now`);

async function ahead(on: Queryable, knownLanes: LaneStarts, id: JobId, lane: Lane): Promise<Pick<JobLook, "ahead" | "more">> {
  const { queue, priority, tenant, task } = lane;
  const values = [id, queue, priority, tenant, task, knownLanes.boundOf(lane), knownLanes.admittedBoundOf(lane)];
  const [row] = await on.query<Pick<JobLook, "ahead" | "more">>(LINE, values);
  return row ?? { ahead: 0, more: false };
}

async function rivalsOf(db: Db, lane: Lane): Promise<readonly Lane[]> {
  const { priority, tenant } = lane;
  return (await lanesOf(db, lane)).filter((other) => other.priority !== priority || other.tenant !== tenant);
}

async function parentsOf(on: Queryable, ids: readonly JobId[]): Promise<readonly Parent[]> {
  const shown = ids.slice(0, MAX_PARENTS);
  const states = new Map((await readFacts(on, shown)).map(({ id, state }) => [id, state]));
  return shown.map((job) => ({ job, state: states.get(job) ?? "deleted" }));
}

/** A job's id tells when it was due. */
function longest(found: readonly (Lane & { readonly id: JobId })[], now: number): readonly LongestWait[] {
  const waits = new Map<string, LongestWait>();
  for (const { queue, priority, id } of found) {
    const key = `${queue}\u0001${priority}`;
    const wait = Math.max(0, now - dueTimeOf(id));
    if (wait >= (waits.get(key)?.longest ?? 0)) waits.set(key, { queue, priority, longest: wait });
  }
  return [...waits.values()];
}
