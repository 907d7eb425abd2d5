-- Everything that this migration made. The schema itself stays: it holds the table of migrations.
drop view pawl.any_job, pawl.any_attempt, pawl.any_log, pawl.any_ready;
drop table pawl.job, pawl.job_kept, pawl.history, pawl.history_kept, pawl.log, pawl.log_kept, pawl.partition_range, pawl.ready, pawl.suspect, pawl.scheduled,
  pawl.parked, pawl.blocked, pawl.dependency, pawl.dead, pawl.intent, pawl.timer, pawl.unique_key, pawl.idempotency_key, pawl.idempotent_batch, pawl.lease, pawl.effect;
drop table pawl.policy, pawl.policy_version, pawl.pause, pawl.lane_limit, pawl.slot, pawl.limit_key, pawl.job_limits, pawl.limit_check, pawl.ingest, pawl.breaker;
drop table pawl.schedule, pawl.tick, pawl.tick_gap, pawl.task, pawl.target, pawl.target_secret, pawl.worker, pawl.live_worker, pawl.idle_worker;
drop table pawl.api_key, pawl.api_secret, pawl.api_key_version, pawl.audit, pawl.audit_head, pawl.reply, pawl.data_key, pawl.purge;
drop table pawl.counter_delta, pawl.counter, pawl.series, pawl.event_watch, pawl.event, pawl.duty, pawl.backfill;
drop function pawl.is_api_secret_valid(text, text), pawl.append_only();
drop sequence pawl.ready_seq, pawl.lease_seq, pawl.limit_queue_seq, pawl.idle_worker_seq, pawl.event_seq, pawl.log_line_seq;
