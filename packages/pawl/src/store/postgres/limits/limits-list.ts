import type { JobId } from "../../../core/jobs/id.js";
import { type LimitKeyId, type LimitReason, type LimitRule, limitKeyId, limitKeyParts, limitKeyRange } from "../../../core/limits/limit-rule.js";
import { tokens } from "../../../core/limits/token-bucket.js";
import { type LimitStore, MAX_WAITING, type WaitingLimitKey } from "../../port/limits/limits.js";
import { textArray } from "../connection/arrays.js";
import { type Db, ms, NOW, statement } from "../connection/db.js";
import { readFor } from "../connection/tenant-role.js";

/** Behind every name, in the order of their bytes. */
const LAST = "\u{10ffff}";

/**
 * From one limit key with a queue to the next, by the index of the queues: what it costs grows with the keys of a page, not with the
 * jobs that wait. The queues are counted to a bound.
 */
const LIST_LIMIT_QUEUES = statement(
  "list_limit_queues",
  `
  with recursive limit_queue(limit_key) as (
    (select p.limit_key from pawl.parked p where p.limit_key is not null and p.limit_key >= $1 and p.limit_key < $2 order by p.limit_key limit 1)
    union all
    select (select p.limit_key from pawl.parked p where p.limit_key is not null and p.limit_key > l.limit_key and p.limit_key < $2 order by p.limit_key limit 1)
    from limit_queue l where l.limit_key is not null
  ),
  page as materialized (select l.limit_key from limit_queue l where l.limit_key is not null limit $3)
  select g.limit_key as key, p.id as next, p.reason,
    (select count(*) from (select from pawl.parked w where w.limit_key = g.limit_key limit ${MAX_WAITING + 1}) w)::int as waiting
  from page g cross join lateral (select p.id, p.reason from pawl.parked p where p.limit_key = g.limit_key order by p.rank, p.seq limit 1) p
  order by g.limit_key`,
);

const LIMIT_KEYS = statement(
  "list_limit_keys",
  `select g.key, g.rule::text, ${ms(NOW)} as now, ${ms("g.full_at")} as full_at, ${ms("g.paused_until")} as paused_until,
     (select count(*) from pawl.slot s where s.kind in ('key', 'serial') and s.key = g.key)::int as held
   from pawl.limit_key g where g.key = any($2::text[])`,
);

interface LimitQueueRow {
  readonly key: LimitKeyId;
  readonly next: JobId;
  readonly reason: LimitReason;
  readonly waiting: number;
}
interface ListedLimitKeyRow {
  readonly key: LimitKeyId;
  readonly rule: string;
  readonly now: number;
  readonly full_at: number | null;
  readonly paused_until: number | null;
  readonly held: number;
}

/** Limit queues are of jobs, so those of one tenant are read as the tenant's role; limit keys are nobody's, and asked for by the limit queues that were found. */
export async function listLimitKeys(db: Db, ...[filter, { limit, after }]: Parameters<LimitStore["list"]>): Promise<readonly WaitingLimitKey[]> {
  const scope = filter.tenant === undefined ? "everyone" : { tenant: filter.tenant };
  const found: WaitingLimitKey[] = [];
  for (let last = after === undefined ? undefined : limitKeyId(after.tenant, after); found.length < limit; ) {
    const { from, to = LAST } = limitKeyRange(filter, last);
    const wanted = limit - found.length;
    const limitQueues = await readFor(db, scope, (on) => on.query<LimitQueueRow>(LIST_LIMIT_QUEUES, [from, to, wanted]));
    found.push(...(await waitingLimitKeysOf(db, limitQueues)));
    last = limitQueues.at(-1)?.key;
    // Where a job was queued a moment ago there may be no limit key yet: it is passed by, and does not end a page.
    if (limitQueues.length < wanted) break;
  }
  return found;
}

async function waitingLimitKeysOf(db: Db, limitQueues: readonly LimitQueueRow[]): Promise<readonly WaitingLimitKey[]> {
  if (limitQueues.length === 0) return [];
  const rows = await db.query<ListedLimitKeyRow>(LIMIT_KEYS, [db.now(), textArray(limitQueues.map(({ key }) => key))]);
  const limitKeys = new Map(rows.map((row) => [row.key, row]));
  return limitQueues.flatMap((limitQueue) => {
    const limitKey = limitKeys.get(limitQueue.key);
    return limitKey === undefined ? [] : [waitingLimitKeyOf(limitQueue, limitKey)];
  });
}

function waitingLimitKeyOf(
  { key, next, reason, waiting }: LimitQueueRow,
  { now, full_at, paused_until, held, ...row }: ListedLimitKeyRow,
): WaitingLimitKey {
  const rule = JSON.parse(row.rule) as LimitRule;
  return {
    ...limitKeyParts(key),
    rule,
    held,
    waiting: Math.min(waiting, MAX_WAITING),
    ...(waiting > MAX_WAITING ? { more: true } : {}),
    ...(rule.rate === undefined ? {} : { tokens: tokens(rule.rate, full_at ?? undefined, now) }),
    ...(full_at === null || full_at <= now ? {} : { fullAt: full_at }),
    ...(paused_until === null || paused_until <= now ? {} : { pausedUntil: paused_until }),
    next: { job: next, reason },
  };
}
