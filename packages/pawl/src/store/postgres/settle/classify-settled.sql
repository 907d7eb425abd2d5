-- Says of settlements whose leases are gone which are on record. A crash that the reaper recorded in place of one makes it stale.
select exists (
  select from pawl.any_attempt a where a.job = g.job and a.lease = g.lease and a.worker = :worker::int and a.outcome <> {{outcome.crashed}}
) as known
from unnest(:settlement.lease::bigint[], :settlement.job::uuid[]) with ordinality as g(lease, job, ord) order by g.ord
