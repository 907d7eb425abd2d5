import type { JobId } from "../../core/id.js";
import { type GateKey, type GateReason, gateKey, gateParts, gatesOf, type LimitRule } from "../../core/limit.js";
import { tokens } from "../../core/rate.js";
import { type GateStanding, type LimitStore, MOST_WAITING } from "../port-limits.js";
import { textArray } from "./arrays.js";
import { type Db, ms, NOW, statement } from "./db.js";
import { readFor } from "./wall.js";

/** Behind every name, in the order of their bytes. */
const LAST = "\u{10ffff}";

/**
 * From one gate with a line to the next, by the index of the lines: what it costs grows with the keys of a page, not with the
 * jobs that wait. The lines are counted to a bound.
 */
const LINES = statement(
  "list_lines",
  `
  with recursive line(gate) as (
    (select p.gate from pawl.parked p where p.gate is not null and p.gate >= $1 and p.gate < $2 order by p.gate limit 1)
    union all
    select (select p.gate from pawl.parked p where p.gate is not null and p.gate > l.gate and p.gate < $2 order by p.gate limit 1)
    from line l where l.gate is not null
  ),
  page as materialized (select l.gate from line l where l.gate is not null limit $3)
  select g.gate as key, p.id as next, p.reason,
    (select count(*) from (select from pawl.parked w where w.gate = g.gate limit ${MOST_WAITING + 1}) w)::int as waiting
  from page g cross join lateral (select p.id, p.reason from pawl.parked p where p.gate = g.gate order by p.rank, p.place limit 1) p
  order by g.gate`,
);

const GATES = statement(
  "list_gates",
  `select g.key, g.rule::text, ${ms(NOW)} as now, ${ms("g.full_at")} as full_at, ${ms("g.paused_until")} as paused_until,
     (select count(*) from pawl.slot s where s.kind in ('key', 'serial') and s.key = g.key)::int as held
   from pawl.gate g where g.key = any($2::text[])`,
);

interface Line {
  readonly key: GateKey;
  readonly next: JobId;
  readonly reason: GateReason;
  readonly waiting: number;
}
interface Row {
  readonly key: GateKey;
  readonly rule: string;
  readonly now: number;
  readonly full_at: number | null;
  readonly paused_until: number | null;
  readonly held: number;
}

/** Lines are of jobs, so those of one tenant are read behind the wall; gates are nobody's, and asked for by the lines that were found. */
export async function listGates(db: Db, ...[filter, { limit, after }]: Parameters<LimitStore["list"]>): Promise<readonly GateStanding[]> {
  const scope = filter.tenant === undefined ? "everyone" : { tenant: filter.tenant };
  const found: GateStanding[] = [];
  for (let last = after === undefined ? undefined : gateKey(after.tenant, after); found.length < limit; ) {
    const { from, to = LAST } = gatesOf(filter, last);
    const asked = limit - found.length;
    const lines = await readFor(db, scope, (on) => on.query<Line>(LINES, [from, to, asked]));
    found.push(...(await standingsOf(db, lines)));
    last = lines.at(-1)?.key;
    // Where somebody lined up a moment ago there may be no gate yet: it is passed by, and does not end a page.
    if (lines.length < asked) break;
  }
  return found;
}

async function standingsOf(db: Db, lines: readonly Line[]): Promise<readonly GateStanding[]> {
  if (lines.length === 0) return [];
  const rows = await db.query<Row>(GATES, [db.now(), textArray(lines.map(({ key }) => key))]);
  const gates = new Map(rows.map((row) => [row.key, row]));
  return lines.flatMap((line) => {
    const gate = gates.get(line.key);
    return gate === undefined ? [] : [standingOf(line, gate)];
  });
}

function standingOf({ key, next, reason, waiting }: Line, { now, full_at, paused_until, held, ...row }: Row): GateStanding {
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
