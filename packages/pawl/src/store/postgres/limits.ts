import type { JobId } from "../../core/id.js";
import { type GateKey, type GateReason, gateKey, type LimitRule } from "../../core/limit.js";
import type { GateRecord, GateRef, LimitStore } from "../port-limits.js";
import { type Admitted, admit } from "./admit.js";
import { type Db, ms, NOW, statement } from "./db.js";
import { listGates } from "./limits-list.js";
import type { LowWaters } from "./low-water.js";
import { pauseGates } from "./tickets.js";

const DUE_GATES = statement(
  "due_gates",
  `select distinct key from (select key from pawl.knock where at >= to_timestamp($3::float8 / 1000) and at <= ${NOW} order by at limit $2) due`,
);
const NEXT_KNOCK = statement(
  "next_knock",
  `select ${ms("at")} - ${ms(NOW)} as next from pawl.knock where at >= to_timestamp($2::float8 / 1000) order by at limit 1`,
);

const GATE = statement(
  "gate",
  `select g.rule::text, ${ms(NOW)} as now, ${ms("g.full_at")} as full_at, ${ms("g.paused_until")} as paused_until,
     array_to_string(array(select s.job from pawl.slot s where s.kind in ('key', 'serial') and s.key = g.key order by s.job), ',') as holders, p.id as next, p.reason
   from pawl.gate g left join lateral (select p.id, p.reason from pawl.parked p where p.gate = g.key order by p.rank, p.place limit 1) p on true where g.key = $2`,
);

interface GateRow {
  readonly rule: string;
  readonly now: number;
  readonly full_at: number | null;
  readonly paused_until: number | null;
  readonly holders: string;
  readonly next: JobId | null;
  readonly reason: GateReason | null;
}

export function postgresLimits(db: Db, low: LowWaters, tell: (admitted: Admitted) => void): LimitStore {
  return {
    async admit(limit) {
      const due = await db.query<{ key: GateKey }>(DUE_GATES, [db.now(), limit, low.knock.value]);
      const admitted = await admit(
        db,
        due.map(({ key }) => key),
      );
      tell(admitted);
      const [next] = await db.query<{ next: number }>(NEXT_KNOCK, [db.now(), low.knock.value]);
      return { count: admitted.count, gates: due.length, ...(next === undefined ? {} : { nextIn: next.next }) };
    },

    async get(ref) {
      const [row] = await db.query<GateRow>(GATE, [db.now(), gateKey(ref.tenant, ref)]);
      return row === undefined ? undefined : recordOf(ref, row);
    },

    list: (filter, page) => listGates(db, filter, page),

    async pause(ref, duration) {
      await db.transaction((tx) => pauseGates(db, tx, [{ gate: gateKey(ref.tenant, ref), for: duration }]));
    },
  };
}

function recordOf(ref: GateRef, row: GateRow): GateRecord {
  return {
    ...ref,
    rule: JSON.parse(row.rule) as LimitRule,
    holders: row.holders === "" ? [] : (row.holders.split(",") as JobId[]),
    ...(row.next === null || row.reason === null ? {} : { next: { job: row.next, reason: row.reason } }),
    ...(row.full_at === null || row.full_at <= row.now ? {} : { fullAt: row.full_at }),
    ...(row.paused_until === null || row.paused_until <= row.now ? {} : { pausedUntil: row.paused_until }),
  };
}
