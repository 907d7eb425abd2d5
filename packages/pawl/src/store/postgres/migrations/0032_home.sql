-- oldest: 32
-- Every job has a number that is drawn when it is stored and never changes. Jobs of one parcel have consecutive numbers, of which
-- the first is the parcel's: so a job's parcel, what is left of it, and its bundle of attempts are found by the job's number.
alter table pawl.job rename column parcel to home;
alter table pawl.job_kept rename column parcel to home;
alter view pawl.any_job rename column parcel to home;

with packed as (
  select u.id, p.seq + u.place - 1 as home from pawl.parcel p cross join lateral unnest(p.jobs) with ordinality as u(id, place)
  union all select u.id, b.seq + u.place - 1 from pawl.bundle b cross join lateral unnest(b.jobs) with ordinality as u(id, place)
)
update pawl.job j set home = coalesce((select p.home from packed p where p.id = j.id limit 1), nextval('pawl.ready_seq'));
update pawl.job_kept set home = nextval('pawl.ready_seq');
alter table pawl.job alter column home set not null;
alter table pawl.job_kept alter column home set not null;

create or replace view pawl.any_attempt as
  select * from pawl.attempt
  union all select * from pawl.attempt_kept
  union all select b.lease, b.since + b.started[b.place] * interval '1 microsecond', b.since + b.finished[b.place] * interval '1 microsecond',
      j.id, b.worker, 0::int2, 5::int2, 1::int2, 0::int2, null::json, null::json
    from pawl.job j cross join lateral (
      select *, array_position(b.jobs, j.id) as place from pawl.bundle b where b.seq > j.home - 1024 and b.seq <= j.home and j.id = any(b.jobs) limit 1
    ) b;
-- Replaced, it has lost what makes it show whoever looks no more than the tables do.
alter view pawl.any_attempt set (security_invoker = true);
