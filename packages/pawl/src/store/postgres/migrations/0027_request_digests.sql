-- oldest: 18
-- What was asked for under a request id: a digest of the task and the input. Null: stored by an older version, which kept none.
alter table pawl.request add column digest text;
