create or replace view pawl.any_attempt as
  select * from pawl.attempt
  union all select * from pawl.attempt_kept
  union all select b.lease, b.since + b.started[b.place] * interval '1 microsecond', b.since + b.finished[b.place] * interval '1 microsecond',
      j.id, b.worker, 0::int2, 5::int2, 1::int2, 0::int2, null::json, null::json
    from pawl.job j cross join lateral (
      select *, array_position(b.jobs, j.id) as place from pawl.bundle b where b.seq >= j.home and b.seq < j.home + 1024 and j.id = any(b.jobs) limit 1
    ) b;
-- Replaced, it has lost what makes it show whoever looks no more than the tables do.
alter view pawl.any_attempt set (security_invoker = true);
alter table pawl.job alter column home drop not null;
alter table pawl.job_kept alter column home drop not null;
-- Versions before look from a number on for what is less than 1024 behind it. A parcel holds 64 jobs at most.
update pawl.job set home = home - 63;
alter view pawl.any_job rename column home to parcel;
alter table pawl.job rename column home to parcel;
alter table pawl.job_kept rename column home to parcel;
