alter view pawl.any_job reset (security_invoker);
alter view pawl.any_attempt reset (security_invoker);
alter view pawl.any_log reset (security_invoker);
alter view pawl.any_ready reset (security_invoker);
