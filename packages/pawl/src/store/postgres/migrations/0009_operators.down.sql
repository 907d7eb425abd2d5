alter table pawl.tally drop column starts, drop column starts_at, drop column starts_since;
drop index pawl.policy_ingest;
drop table pawl.ingest;
