import type { JobId } from "../../core/id.js";
import { type GateKey, type GateReason, gateKey, gateParts, gatesOf, type LimitRule } from "../../core/limit.js";
import { tokens } from "../../core/rate.js";
import { type GateStanding, type LimitStore, MOST_WAITING } from "../port-limits.js";
import { type Db, ms, NOW, statement } from "./db.js";

/** Behind every name, in the order of their bytes. */
const LAST = "\u{10ffff}";

/**
 * From one gate with a line to the next, by the index of the lines: what it costs grows with the keys of a page, not with the
 * jobs that wait. The lines are counted to a bound.
 */
const LIST = statement(
  "list_gates",
  `
  with recursive line(gate) as (
    (select p.gate from pawl.parked p where p.gate is not null and p.gate >= $2 and p.gate < $3 order by p.gate limit 1)
    union all
    select (select p.gate from pawl.parked p where p.gate is not null and p.gate > l.gate and p.gate < $3 order by p.gate limit 1)
    from line l where l.gate is not null
  ),
  page as materialized (
    select l.gate, g.* from line l cross join lateral (select g.rule, g.full_at, g.paused_until from pawl.gate g where g.key = l.gate limit 1) g limit $4
  )
  select g.gate as key, g.rule::text, ${ms(NOW)} as now, ${ms("g.full_at")} as full_at, ${ms("g.paused_until")} as paused_until, p.id as next, p.reason,
    (select count(*) from pawl.slot s where s.kind in ('key', 'serial') and s.key = g.gate)::int as held,
    (select count(*) from (select from pawl.parked w where w.gate = g.gate limit ${MOST_WAITING + 1}) w)::int as waiting
  from page g cross join lateral (select p.id, p.reason from pawl.parked p where p.gate = g.gate order by p.rank, p.place limit 1) p
  order by g.gate`,
);

interface Row {
  readonly key: GateKey;
  readonly rule: string;
  readonly now: number;
  readonly full_at: number | null;
  readonly paused_until: number | null;
  readonly next: JobId;
  readonly reason: GateReason;
  readonly held: number;
  readonly waiting: number;
}

export async function listGates(db: Db, ...[filter, { limit, after }]: Parameters<LimitStore["list"]>): Promise<readonly GateStanding[]> {
  const { from, to = LAST } = gatesOf(filter, after === undefined ? undefined : gateKey(after.tenant, after));
  return (await db.query<Row>(LIST, [db.now(), from, to, limit])).map(standingOf);
}

function standingOf({ key, now, full_at, paused_until, next, reason, held, waiting, ...row }: Row): GateStanding {
  const rule = JSON.parse(row.rule) as LimitRule;
  return {
    ...gateParts(key),
    rule,
    held,
    waiting: Math.min(waiting, MOST_WAITING),
    ...(waiting > MOST_WAITING ? { more: true } : {}),
    ...(rule.rate === undefined ? {} : { tokens: tokens(rule.rate, full_at ?? undefined, now) }),
    ...(full_at === null || full_at <= now ? {} : { fullAt: full_at }),
    ...(paused_until === null || paused_until <= now ? {} : { pausedUntil: paused_until }),
    next: { job: next, reason },
  };
}
