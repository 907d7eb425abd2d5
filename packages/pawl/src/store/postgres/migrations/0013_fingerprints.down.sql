drop index pawl.dead_fingerprint;
alter table pawl.dead drop column fingerprint;
