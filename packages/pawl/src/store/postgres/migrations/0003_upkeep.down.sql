alter table pawl.worker drop column seen_at;
drop table pawl.backfill;
drop table pawl.duty;
