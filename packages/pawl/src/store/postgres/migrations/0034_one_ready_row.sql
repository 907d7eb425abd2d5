-- oldest: 34
-- One table of ready rows in place of `ready` and `parcel`. A row holds 1 to 64 jobs of one lane, which stand there one after the
-- other: `seq` is the place of the first. The id of one job is in `id`, those of several are in `jobs`. `inputs` and `options` are
-- those of its jobs in their order, as JSON texts with a record separator (U+001E) between them, and an empty text where a job has
-- no options. Without `inputs` the jobs are looked up, by whoever claims them; a row that has them stands at the numbers of its jobs.
-- Insert and delete only: a claim that takes some of a row's jobs puts the others back as a new row.
alter table pawl.ready alter column id drop not null;
alter table pawl.ready alter column spent set default 0;
alter table pawl.ready alter column crashes set default 0;
alter table pawl.ready add column size int not null default 1;
alter table pawl.ready add column jobs uuid[];
alter table pawl.ready add column inputs text;
alter table pawl.ready add column options text;
alter table pawl.ready alter column jobs set storage external;
alter table pawl.ready alter column inputs set storage external;
alter table pawl.ready alter column options set storage external;
alter table pawl.ready set (toast_tuple_target = 8160, autovacuum_vacuum_threshold = 500);
drop index pawl.ready_id;
create unique index ready_id on pawl.ready (id) where id is not null;

insert into pawl.ready (seq, size, band, queue, tenant, task, id, jobs, inputs)
  select seq, size, band, queue, tenant, task, case when size = 1 then jobs[1] end, case when size > 1 then jobs end,
    case when cardinality(inputs) = size then array_to_string(inputs, U&'\001E') end
  from pawl.parcel;
create or replace view pawl.any_ready as
  select r.seq + u.place - 1 as seq, u.id, r.band, r.queue, r.tenant, r.task
    from pawl.ready r cross join lateral unnest(coalesce(r.jobs, array[r.id])) with ordinality as u(id, place)
  union all select seq, id, band, queue, tenant, task from pawl.suspect;
-- Replaced, it has lost what makes it show whoever looks no more than the tables do.
alter view pawl.any_ready set (security_invoker = true);
drop table pawl.parcel;
