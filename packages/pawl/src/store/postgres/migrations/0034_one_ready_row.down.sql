create table pawl.parcel (
  seq bigint not null,
  size int not null,
  band int2 not null,
  queue text collate "C" not null,
  tenant text collate "C" not null,
  task text collate "C" not null,
  jobs uuid[] not null,
  inputs json[],
  facts json[],
  primary key (queue, band, tenant, task, seq)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0, toast_tuple_target = 8160);
alter table pawl.parcel alter column jobs set storage external;
alter table pawl.parcel alter column inputs set storage external;
alter table pawl.parcel alter column facts set storage external;
insert into pawl.parcel (seq, size, band, queue, tenant, task, jobs) select seq, size, band, queue, tenant, task, jobs from pawl.ready where jobs is not null;
delete from pawl.ready where jobs is not null;
create or replace view pawl.any_ready as
  select seq, id, band, queue, tenant, task from pawl.ready
  union all select seq, id, band, queue, tenant, task from pawl.suspect
  union all select p.seq + u.place - 1, u.id, p.band, p.queue, p.tenant, p.task
    from pawl.parcel p cross join lateral unnest(p.jobs) with ordinality as u(id, place);
alter view pawl.any_ready set (security_invoker = true);
drop index pawl.ready_id;
alter table pawl.ready drop column size;
alter table pawl.ready drop column jobs;
alter table pawl.ready drop column inputs;
alter table pawl.ready drop column options;
alter table pawl.ready alter column id set not null;
alter table pawl.ready alter column spent drop default;
alter table pawl.ready alter column crashes drop default;
alter table pawl.ready set (autovacuum_vacuum_threshold = 2000);
alter table pawl.ready reset (toast_tuple_target);
create unique index ready_id on pawl.ready (id);
