import type pg from "pg";
import { JOB_STATES } from "../../../packages/pawl/src/core/jobs/job.js";
import { outcomeCode, stateCode } from "../../../packages/pawl/src/store/postgres/connection/codes.js";
import { RECORD_SEPARATOR } from "../../../packages/pawl/src/store/postgres/connection/sql-constants.js";
import { JOBS_PER_ROW } from "../../../packages/pawl/src/store/postgres/enqueue/ready-rows.js";

const SUCCEEDED = stateCode("succeeded");
const DEAD = stateCode("dead");
const CANCELLED = stateCode("cancelled");
const COLUMNS = JOB_STATES.join(", ");

/** Where each job is, from the tables alone. A job must be in exactly one place. */
const JOB_LOCATIONS = `
  place as (
    select u.id, 'ready row ' || r.seq as place, 'ready' as state from pawl.ready r cross join lateral unnest(coalesce(r.jobs, array[r.id])) as u(id)
    union all select id, 'suspect', 'ready' from pawl.suspect
    union all select id, 'scheduled', 'scheduled' from pawl.scheduled
    union all select id, 'parked', 'parked' from pawl.parked
    union all select id, 'blocked', 'blocked' from pawl.blocked
    union all select id, 'dead', 'dead' from pawl.dead
    union all select u.job, 'lease ' || l.id, 'running' from pawl.lease l cross join lateral unnest(l.jobs) with ordinality as u(job, place) where not u.place::int <@ l.settled
    union all select job, 'history', case when next = ${SUCCEEDED} then 'succeeded' else 'cancelled' end
      from (select distinct on (job) job, next from pawl.any_attempt order by job, lease desc) newest where next in (${SUCCEEDED}, ${CANCELLED})
  )`;

/** Holds between any two transactions. */
const STRUCTURE = `
  with ${JOB_LOCATIONS},
  line as (select job, lease, outcome, lag(next) over (partition by job order by lease) as before from pawl.any_attempt),
  truth as (select j.queue, j.task, p.state, count(*)::int as n from place p join pawl.any_job j on j.id = p.id group by 1, 2, 3),
  told as (
    select c.queue, c.task, s.state, sum(s.n)::int as n
    from (select queue, task, ${COLUMNS} from pawl.counter union all select queue, task, ${COLUMNS} from pawl.counter_delta) c
    cross join lateral (values ${JOB_STATES.map((state) => `('${state}', c.${state})`).join(", ")}) as s(state, n) group by 1, 2, 3
  )
  select 'job ' || id || ' is in ' || string_agg(place, ' and ' order by place) from place group by id having count(*) > 1
  union all select 'job ' || j.id || ' is nowhere' from pawl.any_job j where not exists (select from place p where p.id = j.id)
  union all select 'job ' || p.id || ' is in ' || p.place || ' and has no row' from place p where not exists (select from pawl.any_job j where j.id = p.id)
  union all select 'job ' || id || ' has two rows' from pawl.any_job group by id having count(*) > 1
  union all select 'jobs ' || string_agg(id::text, ' and ') || ' have one number' from pawl.any_job group by home having count(*) > 1
  union all select 'ready row ' || seq || ' does not say what it holds' from pawl.ready
    where (id is null) = (jobs is null) or size <> coalesce(cardinality(jobs), 1) or (jobs is not null and size not between 2 and ${JOBS_PER_ROW})
      or (inputs is not null and cardinality(string_to_array(inputs, E'${RECORD_SEPARATOR}')) <> size)
      or (options is not null and (inputs is null or cardinality(string_to_array(options || ' ', E'${RECORD_SEPARATOR}')) <> size))
  union all select 'job ' || u.id || ' does not stand at its number' from pawl.ready r cross join lateral unnest(coalesce(r.jobs, array[r.id])) with ordinality as u(id, place)
    join pawl.any_job j on j.id = u.id where (r.jobs is not null or r.inputs is not null) and j.home <> r.seq + u.place - 1
  union all select 'job ' || u.id || ' is not carried as it is' from pawl.ready r
    cross join lateral unnest(coalesce(r.jobs, array[r.id]), string_to_array(r.inputs, E'${RECORD_SEPARATOR}'), string_to_array(r.options, E'${RECORD_SEPARATOR}')) as u(id, input, options)
    join pawl.any_job j on j.id = u.id where u.input <> j.input::text or (r.inputs is not null and coalesce(u.options, '') <> coalesce(j.options::text, ''))
  union all select 'job ' || job || ' was settled twice under lease ' || lease from pawl.any_attempt group by job, lease having count(*) > 1
  union all select 'job ' || u.job || ' is settled in lease ' || l.id || ' and not in history' from pawl.lease l cross join lateral unnest(l.jobs) with ordinality as u(job, place)
    where u.place::int <@ l.settled and not exists (select from pawl.any_attempt a where a.job = u.job and a.lease = l.id) and exists (select from pawl.any_job j where j.id = u.job)
  union all select 'job ' || a.job || ' is in history under lease ' || l.id || ' and not settled' from pawl.lease l join pawl.any_attempt a on a.lease = l.id
    where not array_position(l.jobs, a.job) <@ l.settled
  union all select 'job ' || a.job || ' has a row of history that no read finds' from (select unnest(coalesce(h.jobs, array[h.first])) as job, h.lease from pawl.history h) a
    where exists (select from pawl.job j where j.id = a.job) and not exists (select from pawl.any_attempt f where f.job = a.job and f.lease = a.lease)
  union all select 'job ' || job || ' went on after its end' from line
    where before in (${SUCCEEDED}, ${CANCELLED}) or (before = ${DEAD} and outcome <> ${outcomeCode("redriven")})
  union all select 'lease ' || l.id || ' says ' || l.unsettled || ' open jobs and has ' || r.n from pawl.lease l
    cross join lateral (select count(*)::int as n from place p where p.place = 'lease ' || l.id) r where l.unsettled <> r.n or r.n = 0
  union all select 'counts say ' || coalesce(t.n, 0) || ' ' || state || ' of ' || task || ', there are ' || coalesce(w.n, 0)
    from told t full join truth w using (queue, task, state) where coalesce(t.n, 0) <> coalesce(w.n, 0)
  union all select 'job ' || b.id || ' is blocked by nothing' from pawl.blocked b where not exists (select from pawl.dependency d where d.child = b.id)
  union all select 'job ' || d.child || ' is not blocked and waits for ' || d.parent from pawl.dependency d where not exists (select from pawl.blocked b where b.id = d.child)`;

/** The same, and what holds once the duties have passed by and nobody is at work. */
const QUIET = `${STRUCTURE}
  union all select 'job ' || i.job || ' was asked to ' || i.kind || ' and nobody will' from pawl.intent i
    where not exists (select from place p where p.id = i.job and (p.state = 'running' or (p.state = 'blocked' and i.kind = 'pause')))
  union all select 'job ' || d.child || ' waits for ' || d.parent || ', which nobody looked at' from pawl.dependency d where not d.verified
  union all select 'job ' || d.child || ' waits for ' || d.parent || ', which is ' || coalesce(p.state, 'deleted') from pawl.dependency d left join place p on p.id = d.parent
    where p.state = 'succeeded' or (coalesce(p.state, 'deleted') in ('dead', 'cancelled', 'deleted') and d.on_dependency_death <> 'wait')`;

/** What is broken, in sentences. */
export async function violations(client: pg.Client, when: "now" | "quiet"): Promise<readonly string[]> {
  const text = when === "now" ? STRUCTURE : QUIET;
  const { rows } = await client.query<[string]>({ name: `violations ${when}`, text, rowMode: "array" });
  return rows.map(([sentence]) => sentence);
}
