-- The job that was handed over under a lease, for a worker that has not heard of it.
select j.id as job, j.home::float8, (extract(epoch from l.claimed_at) * 1000)::float8 as now, j.queue, j.priority, j.tenant, j.task,
  (select i.kind from pawl.intent i where i.job = j.id limit 1) as intent
from pawl.lease l cross join lateral (select * from pawl.any_job j where j.id = l.jobs[1] limit 1) j
where l.id = :lease::bigint and l.worker = :worker::int
