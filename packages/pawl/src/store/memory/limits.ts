import { gateKey } from "../../core/limit.js";
import type { LimitStore } from "../port-limits.js";
import { pauseGate } from "./gate-lines.js";
import { visit } from "./gates.js";
import type { JobRow, Standing, Tables } from "./state.js";

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

    pause: (ref, duration) =>
      tables.step(() => {
        pauseGate(tables, gateKey(ref.tenant, ref), duration);
      }),
  };
}
