alter table pawl.key drop column since;
insert into pawl.ready (id, band, spent, crashes, queue, tenant, task)
  select id, band, spent, crashes, queue, tenant, task from pawl.parked where gate is not null order by place;
insert into pawl.delta (queue, task, parked, ready) select queue, task, -count(*), count(*) from pawl.parked where gate is not null group by queue, task;
delete from pawl.parked where gate is not null;
drop index pawl.parked_gate;
alter table pawl.parked drop column gate, drop column rank, drop column place;
drop sequence pawl.line_seq;
drop table pawl.knock;
drop table pawl.ticket;
drop table pawl.gate;
drop table pawl.slot;
