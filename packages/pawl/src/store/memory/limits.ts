import { compareText } from "../../core/lane.js";
import { type GateKey, gateKey, gateParts, gatesOf } from "../../core/limit.js";
import { tokens } from "../../core/rate.js";
import { type GateStanding, type LimitStore, MOST_WAITING } from "../port-limits.js";
import { pauseGate } from "./gate-lines.js";
import { visit } from "./gates.js";
import type { GateRow, JobRow, Standing, Tables } from "./state.js";

export function memoryLimits(tables: Tables): LimitStore {
  return {
    admit: (limit) =>
      tables.step(() => {
        const due = [...tables.knocks]
          .filter(([, at]) => at <= tables.now)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .slice(0, limit);
        const count = due.reduce((sum, [gate]) => sum + visit(tables, gate), 0);
        const next = Math.min(...tables.knocks.values());
        return { count, gates: due.length, ...(Number.isFinite(next) ? { nextIn: next - tables.now } : {}) };
      }),

    get: (ref) =>
      tables.step(() => {
        const key = gateKey(ref.tenant, ref);
        const gate = tables.gates.get(key);
        if (gate === undefined) return undefined;
        const { rule, fullAt, pausedUntil, line } = gate;
        const [first] = line;
        const next = first === undefined ? undefined : ((tables.jobs.get(first.job) as JobRow).place as { standing: Standing }).standing;
        return {
          ...ref,
          rule,
          holders: [...tables.slots.holders("key", key), ...tables.slots.holders("serial", key)].sort(),
          ...(next === undefined ? {} : { next: { job: next.job, reason: next.reason } }),
          ...(fullAt === undefined || fullAt <= tables.now ? {} : { fullAt }),
          ...(pausedUntil === undefined || pausedUntil <= tables.now ? {} : { pausedUntil }),
        };
      }),

    list: (filter, { limit, after }) =>
      tables.step(() => {
        const { from, to } = gatesOf(filter, after === undefined ? undefined : gateKey(after.tenant, after));
        return [...tables.gates]
          .filter(([key, { line }]) => line.length > 0 && key >= from && (to === undefined || key < to))
          .sort(([a], [b]) => compareText(a, b))
          .slice(0, limit)
          .map(([key, gate]) => standingOf(tables, key, gate));
      }),

    pause: (ref, duration) =>
      tables.step(() => {
        pauseGate(tables, gateKey(ref.tenant, ref), duration);
      }),
  };
}

function standingOf(tables: Tables, key: GateKey, { rule, line, fullAt, pausedUntil }: GateRow): GateStanding {
  const { job, reason } = ((tables.jobs.get(line[0]?.job as Standing["job"]) as JobRow).place as { standing: Standing }).standing;
  return {
    ...gateParts(key),
    rule,
    held: tables.slots.count("key", key) + tables.slots.count("serial", key),
    waiting: Math.min(line.length, MOST_WAITING),
    ...(line.length > MOST_WAITING ? { more: true } : {}),
    ...(rule.rate === undefined ? {} : { tokens: tokens(rule.rate, fullAt, tables.now) }),
    ...(fullAt === undefined || fullAt <= tables.now ? {} : { fullAt }),
    ...(pausedUntil === undefined || pausedUntil <= tables.now ? {} : { pausedUntil }),
    next: { job, reason },
  };
}
