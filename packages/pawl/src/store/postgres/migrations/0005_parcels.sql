-- oldest: 5
-- Ready jobs of one lane that were enqueued together, as one row: a bulk enqueue and a claim then write a row per
-- hundreds of jobs. `seq` is the place of its first job in the lane, each next job has the next one. Insert and delete
-- only: a claim that takes some of them puts the others back as a new row. Whoever wants one of its jobs by id opens it:
-- all become rows of `ready`, in their places.
create table pawl.parcel (
  seq bigint not null,
  size int not null,
  band int2 not null,
  queue text collate "C" not null,
  tenant text collate "C" not null,
  task text collate "C" not null,
  jobs uuid[] not null,
  primary key (queue, band, tenant, task, seq)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
alter table pawl.parcel alter column jobs set storage external;

-- Room for the jobs of a parcel between two numbers.
alter sequence pawl.ready_seq increment by 1024;

-- The number of the parcel a job was enqueued in. What is left of it lies between that and the next.
alter table pawl.job add column parcel bigint;
alter table pawl.job_kept add column parcel bigint;
create or replace view pawl.any_job as select * from pawl.job union all select * from pawl.job_kept;

-- For reads that may look at all of them.
create view pawl.any_ready as
  select seq, id, band, queue, tenant, task from pawl.ready
  union all select seq, id, band, queue, tenant, task from pawl.suspect
  union all select p.seq + u.place - 1, u.id, p.band, p.queue, p.tenant, p.task
    from pawl.parcel p cross join lateral unnest(p.jobs) with ordinality as u(id, place);
