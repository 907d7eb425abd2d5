-- Takes away the row of an idle worker, and answers the lease that came of it. It waits for an enqueue that is just taking it.
with gone as (delete from pawl.idle_worker where id = :registration::bigint and worker = :worker::int returning lease)
select lease::text, set_config('synchronous_commit', 'off', true) from gone
