-- All that was committed before it is on disk by the time it is answered; it leaves nothing behind but a note in the log. It asks for the
-- jobs as well: the server may have crashed since, and come back without them.
with noted as materialized (select pg_logical_emit_message(true, 'pawl', 'enqueued')::text as at)
select j.id from noted cross join pawl.job j where j.id = any(:jobs::uuid[])
