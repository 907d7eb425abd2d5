-- oldest: 11
-- What dead jobs of one cause have in common (core/fingerprint.ts). Null until somebody asks for it: deaths are written on
-- the hot path, and read by people.
alter table pawl.dead add column fingerprint text collate "C";
create index dead_fingerprint on pawl.dead (fingerprint, id);
