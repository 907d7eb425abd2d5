insert into pawl.ready (seq, id, band, spent, crashes, queue, tenant, task)
  select p.seq + u.place - 1, u.id, p.band, 0, 0, p.queue, p.tenant, p.task
  from pawl.parcel p cross join lateral unnest(p.jobs) with ordinality as u(id, place);
drop view pawl.any_ready;
drop table pawl.parcel;
drop view pawl.any_job;
alter table pawl.job drop column parcel;
alter table pawl.job_kept drop column parcel;
create view pawl.any_job as select * from pawl.job union all select * from pawl.job_kept;
alter sequence pawl.ready_seq increment by 1;
