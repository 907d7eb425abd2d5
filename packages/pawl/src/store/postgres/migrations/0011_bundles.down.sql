insert into pawl.attempt (lease, started_at, finished_at, job, worker, outcome, next, spent, crashes)
  select b.lease, b.since + u.started * interval '1 microsecond', b.since + u.finished * interval '1 microsecond', u.job, b.worker, 0, 5, 1, 0
  from pawl.bundle b cross join lateral unnest(b.jobs, b.started, b.finished) as u(job, started, finished)
  where exists (select from pawl.job j where j.id = u.job);
create or replace view pawl.any_attempt as select * from pawl.attempt union all select * from pawl.attempt_kept;
drop table pawl.bundle;
alter table pawl.lease drop column settled;
