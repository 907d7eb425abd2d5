import type { JobId } from "../../../core/jobs/id.js";
import { type LimitKeyId, type LimitReason, type LimitRule, limitKeyId } from "../../../core/limits/limit-rule.js";
import type { LimitKeyRecord, LimitKeyRef, LimitStore } from "../../port/limits/limits.js";
import type { LowWatermarks } from "../claim/low-watermarks.js";
import { ms, NOW, type StoreDb, statement } from "../connection/db.js";
import { type AdmittedReport, admit } from "./admit.js";
import { pauseLimitKeys } from "./job-limits.js";
import { listLimitKeys } from "./limits-list.js";

const DUE_LIMIT_KEYS = statement(
  "due_limit_keys",
  `select distinct key from (select key from pawl.limit_check where at >= to_timestamp($3::float8 / 1000) and at <= ${NOW} order by at limit $2) due`,
);
const NEXT_LIMIT_CHECK = statement(
  "next_limit_check",
  `select ${ms("at")} - ${ms(NOW)} as next from pawl.limit_check where at >= to_timestamp($2::float8 / 1000) order by at limit 1`,
);

const READ_LIMIT_KEY = statement(
  "limit_key",
  `select g.rule::text, ${ms(NOW)} as now, ${ms("g.full_at")} as full_at, ${ms("g.paused_until")} as paused_until,
     array_to_string(array(select s.job from pawl.slot s where s.kind in ('key', 'serial') and s.key = g.key order by s.job), ',') as holders, p.id as next, p.reason
   from pawl.limit_key g left join lateral (select p.id, p.reason from pawl.parked p where p.limit_key = g.key order by p.rank, p.seq limit 1) p on true where g.key = $2`,
);

interface LimitKeyRow {
  readonly rule: string;
  readonly now: number;
  readonly full_at: number | null;
  readonly paused_until: number | null;
  readonly holders: string;
  readonly next: JobId | null;
  readonly reason: LimitReason | null;
}

/** parked → ready, at up to `limit` limit keys that are to be looked at. */
export async function admitDue(
  db: StoreDb,
  watermarks: LowWatermarks,
  tell: (admitted: AdmittedReport) => void,
  limit: number,
): Promise<{ readonly count: number; readonly limitKeys: number; readonly nextIn?: number }> {
  const due = await db.query<{ key: LimitKeyId }>(DUE_LIMIT_KEYS, [db.now(), limit, watermarks.limitCheck.value]);
  const admitted = await admit(
    db,
    due.map(({ key }) => key),
  );
  tell(admitted);
  const [next] = await db.query<{ next: number }>(NEXT_LIMIT_CHECK, [db.now(), watermarks.limitCheck.value]);
  return { count: admitted.count, limitKeys: due.length, ...(next === undefined ? {} : { nextIn: next.next }) };
}

export function postgresLimits(db: StoreDb): LimitStore {
  return {
    async get(ref) {
      const [row] = await db.query<LimitKeyRow>(READ_LIMIT_KEY, [db.now(), limitKeyId(ref.tenant, ref)]);
      return row === undefined ? undefined : recordOf(ref, row);
    },

    list: (filter, page) => listLimitKeys(db, filter, page),

    async pause(ref, duration) {
      await db.transaction((tx) => pauseLimitKeys(db, tx, [{ limitKey: limitKeyId(ref.tenant, ref), for: duration }]));
    },
  };
}

function recordOf(ref: LimitKeyRef, row: LimitKeyRow): LimitKeyRecord {
  return {
    ...ref,
    rule: JSON.parse(row.rule) as LimitRule,
    holders: row.holders === "" ? [] : (row.holders.split(",") as JobId[]),
    ...(row.next === null || row.reason === null ? {} : { next: { job: row.next, reason: row.reason } }),
    ...(row.full_at === null || row.full_at <= row.now ? {} : { fullAt: row.full_at }),
    ...(row.paused_until === null || row.paused_until <= row.now ? {} : { pausedUntil: row.paused_until }),
  };
}
