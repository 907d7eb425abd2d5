-- Everything that this migration made. The schema itself stays: it holds the table of migrations.
drop view pawl.any_job, pawl.any_attempt, pawl.any_log, pawl.any_ready;
drop table pawl.job, pawl.job_kept, pawl.history, pawl.history_kept, pawl.log, pawl.log_kept, pawl.span, pawl.ready, pawl.suspect, pawl.scheduled,
  pawl.parked, pawl.blocked, pawl.dependency, pawl.dead, pawl.intent, pawl.timer, pawl.key, pawl.request, pawl.batch, pawl.lease, pawl.effect;
drop table pawl.policy, pawl.policy_mark, pawl.pause, pawl.lane_limit, pawl.slot, pawl.gate, pawl.ticket, pawl.knock, pawl.ingest, pawl.breaker;
drop table pawl.schedule, pawl.tick, pawl.tick_gap, pawl.task, pawl.target, pawl.target_secret, pawl.worker, pawl.serving, pawl.seat;
drop table pawl.api_key, pawl.api_secret, pawl.api_key_mark, pawl.audit, pawl.audit_head, pawl.reply, pawl.data_key, pawl.purge;
drop table pawl.delta, pawl.tally, pawl.series, pawl.watch, pawl.event, pawl.duty, pawl.backfill;
drop function pawl.api_secret_good(text, text), pawl.append_only();
drop sequence pawl.ready_seq, pawl.lease_seq, pawl.line_seq, pawl.seat_seq, pawl.event_seq;
