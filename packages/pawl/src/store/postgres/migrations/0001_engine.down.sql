-- Everything 0001 made. The schema itself stays: it may hold the table of migrations.
drop view pawl.any_job, pawl.any_attempt, pawl.any_log;
drop table pawl.job, pawl.attempt, pawl.log, pawl.job_kept, pawl.attempt_kept, pawl.log_kept, pawl.ready, pawl.suspect,
  pawl.scheduled, pawl.parked, pawl.blocked, pawl.dependency, pawl.dead, pawl.intent, pawl.worker, pawl.lease,
  pawl.timer, pawl.key, pawl.request, pawl.effect, pawl.pause, pawl.delta, pawl.tally, pawl.span;
drop sequence pawl.ready_seq, pawl.lease_seq;
