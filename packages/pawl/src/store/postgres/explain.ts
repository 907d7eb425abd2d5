import type { Parent } from "../../core/explain.js";
import { dueTimeOf, type JobId } from "../../core/id.js";
import type { ParkReason } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import type { Pace } from "../../core/pace.js";
import type { ExplainStore, Look, Wait } from "../port-explain.js";
import { MOST_AHEAD, MOST_COUNTED, MOST_PARENTS } from "../port-explain.js";
import { type Db, ms, NOW, statement } from "./db.js";
import type { Queryable } from "./drivers/driver.js";
import { heads, lanesOf } from "./explain-lanes.js";
import { readFacts } from "./facts.js";
import { countDepths } from "./ingest-depth.js";
import { keyHolders } from "./key-holders.js";
import type { LaneBounds } from "./lane-bounds.js";
import { type LimitRow, limitStateOf } from "./lane-limit-row.js";
import type { LowWaters } from "./low-water.js";
import { find } from "./read.js";
import { SEQ_STEP } from "./ready-rows.js";
import { readFor } from "./wall.js";

/** Of a lane: how many jobs are before one, in its front and then in the rest, and whether there are more rows of them than are counted. */
const LINE = statement(
  "explain_line",
  `
  with own as materialized (
    select coalesce(
      (select r.seq from pawl.ready r where r.id = $1::uuid),
      (select r.seq + array_position(r.jobs, $1::uuid) - 1 from pawl.any_job j cross join lateral (
        select r.seq, r.jobs from pawl.ready r
        where r.queue = j.queue and r.band = j.band and r.tenant = j.tenant and r.task = j.task and r.seq > j.home - ${SEQ_STEP} and r.seq <= j.home
          and $1::uuid = any(r.jobs) limit 1
      ) r where j.id = $1::uuid)
    ) as seq
  ),
  before as materialized (
    select r.seq, r.size from (values ($7::bigint, least((select seq from own), 0)), ($6::bigint, coalesce((select seq from own), 9223372036854775807))) as s(low, below)
    cross join lateral (
      select r.seq, r.size from pawl.ready r where r.queue = $2 and r.band = $3 and r.tenant = $4 and r.task = $5 and r.seq >= s.low and r.seq < s.below
      order by r.seq limit ${MOST_AHEAD} + 1
    ) r limit ${MOST_AHEAD} + 1
  )
  select (select coalesce(sum(least(b.size, (select seq from own) - b.seq)), 0)::float8 from (select * from before limit ${MOST_AHEAD}) b) as ahead,
    (select count(*) > ${MOST_AHEAD} from before) as more`,
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
      select t.starts, ${ms("t.starts_at")} as at, ${ms("t.starts_since")} as since from pawl.tally t where t.queue = $3 and t.task = $4 and t.starts_at is not null
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

export function postgresExplain(db: Db, bounds: LaneBounds, low: LowWaters): ExplainStore {
  return {
    async look(scope, id) {
      const facts = await readFor(db, scope, (on) => find(on, scope, id));
      if (facts === undefined) return undefined;
      const { started: _, ...job } = facts;
      const { lane, state } = job;
      const asked = [db.now(), id, lane.queue, lane.task, lane.tenant, state === "running"];
      // What is around it (limits, pace, the lanes beside its own) is not the tenant's, and told in sums.
      const [[around], line, rivals, parents, holders] = await Promise.all([
        db.query<AroundRow>(AROUND, asked),
        readFor(db, scope, (on) => ahead(on, bounds, id, lane)),
        rivalsOf(db, lane),
        readFor(db, scope, (on) => parentsOf(on, job.waitsFor ?? [])),
        keyHolders(db, scope, job),
      ]);
      const { now, suspect, holder, pace, limits } = around as AroundRow;
      return {
        now,
        job,
        ...(holder === null ? {} : { holder: JSON.parse(holder) as NonNullable<Look["holder"]> }),
        parents,
        keyHolders: holders,
        suspect,
        ...line,
        rivals,
        ...(pace === null ? {} : { pace: JSON.parse(pace) as Pace }),
        limits: ((limits === null ? [] : JSON.parse(limits)) as readonly (LimitRow & { used: number })[]).map((row) => limitStateOf(row, row.used)),
      };
    },
    async waits(lanes) {
      const [{ now }] = (await db.query<{ now: number }>(CLOCK, [db.now()])) as [{ now: number }];
      return longest(await heads(db, lanes), now);
    },
    parked: () => db.query<{ reason: ParkReason; count: number }>(PARKED),
    async depths(tenants) {
      const limits = tenants.map((name) => ({ kind: "tenant" as const, name, depth: MOST_COUNTED }));
      const depths = await countDepths(db, low, limits);
      return limits.map((limit) => ({ tenant: limit.name, depth: depths.get(limit) ?? 0 }));
    },
  };
}

/** Rows of the table as they come: how many there are in all is known from the counters. */
const PARKED = statement(
  "explain_parked",
  `select reason, count(*)::int as count from (select reason from pawl.parked limit ${MOST_COUNTED}) p group by reason order by reason`,
);

const CLOCK = statement("explain_clock", `select ${ms(NOW)} as now`);

async function ahead(on: Queryable, bounds: LaneBounds, id: JobId, lane: Lane): Promise<Pick<Look, "ahead" | "more">> {
  const { queue, band, tenant, task } = lane;
  const values = [id, queue, band, tenant, task, bounds.boundOf(lane), bounds.frontOf(lane)];
  const [row] = await on.query<Pick<Look, "ahead" | "more">>(LINE, values);
  return row ?? { ahead: 0, more: false };
}

async function rivalsOf(db: Db, lane: Lane): Promise<readonly Lane[]> {
  const { band, tenant } = lane;
  return (await lanesOf(db, lane)).filter((other) => other.band !== band || other.tenant !== tenant);
}

async function parentsOf(on: Queryable, ids: readonly JobId[]): Promise<readonly Parent[]> {
  const shown = ids.slice(0, MOST_PARENTS);
  const states = new Map((await readFacts(on, shown)).map(({ id, state }) => [id, state]));
  return shown.map((job) => ({ job, state: states.get(job) ?? "gone" }));
}

/** A job's id tells when it was due. */
function longest(found: readonly (Lane & { readonly id: JobId })[], now: number): readonly Wait[] {
  const waits = new Map<string, Wait>();
  for (const { queue, band, id } of found) {
    const key = `${queue}\u0001${band}`;
    const wait = Math.max(0, now - dueTimeOf(id));
    if (wait >= (waits.get(key)?.longest ?? 0)) waits.set(key, { queue, band, longest: wait });
  }
  return [...waits.values()];
}
