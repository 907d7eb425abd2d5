-- oldest: 11
-- Views are read with the rights of whoever asks, not with their owner's: what a role may see of a table, it may see of them.
alter view pawl.any_job set (security_invoker = true);
alter view pawl.any_attempt set (security_invoker = true);
alter view pawl.any_log set (security_invoker = true);
alter view pawl.any_ready set (security_invoker = true);
