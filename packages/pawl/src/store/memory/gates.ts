import { type Gate, type InLine, letIn, lookedAt, roomOf } from "../../core/admission.js";
import { type GateKey, type LimitRule, type Pass, rankOf, TURN_RANK } from "../../core/limit.js";
import { gateOf, keepsTurn, knock, passesOfRow, stand, stepOut } from "./gate-lines.js";
import { move } from "./places.js";
import type { GateRow, JobRow, Standing, Tables } from "./state.js";

/** The most that one round looks at. */
const MOST_HEADS = 100;

function standingOf(tables: Tables, key: GateKey, rule: LimitRule): Gate {
  const { rule: current, fullAt, pausedUntil, closed } = gateOf(tables, key, rule);
  const unstarted = tables.slots.holders("rate", key).filter((job) => tables.jobs.get(job)?.place.state === "ready");
  return {
    rule: current,
    fullAt,
    pausedUntil,
    closed,
    held: tables.slots.count("key", key) + tables.slots.count("serial", key),
    unstarted: unstarted.length,
  };
}

/** Looks at one gate: lets in who can pass, until nobody can. Answers how many it let in. */
export function visit(tables: Tables, key: GateKey): number {
  tables.knocks.delete(key);
  let count = 0;
  for (;;) {
    const row = tables.gates.get(key);
    if (row === undefined) return count;
    const own = standingOf(tables, key, row.rule);
    const asked = row.rule.serial === true ? 1 : roomOf(own, MOST_HEADS);
    if (row.line.length === 0 || asked === 0) {
      lookedAt(own);
      row.closed = own.closed;
      return count;
    }
    const heads = row.line.slice(0, asked).map(({ job }): InLine<JobRow> => {
      const waiting = tables.jobs.get(job) as JobRow;
      const passes = passesOfRow(waiting);
      return { job: waiting, passes, keepsTurn: keepsTurn(tables, waiting, passes[0] as Pass) };
    });
    const gates = new Map(heads.flatMap(({ passes }) => passes.map(({ gate, rule }) => [gate, standingOf(tables, gate, rule)] as const)));
    for (const [gate, standing] of gates) if (gate !== key && tables.gates.get(gate)?.line.length === 0) lookedAt(standing);
    const { admitted, waiting, waited, knocks, closed } = letIn(key, heads, gates, tables.now);
    for (const [gate, { fullAt, closed: shut }] of gates) Object.assign(tables.gates.get(gate) as GateRow, { fullAt, closed: shut });
    for (const { job, slots } of admitted) {
      move(tables, job, "admit", { state: "ready", ...(waited ? { front: true } : {}) });
      for (const { kind, gate } of slots) tables.slots.add(kind, gate, job.id);
    }
    for (const { job, at, reason, slots, turn } of waiting) {
      for (const { kind, gate } of slots) tables.slots.add(kind, gate, job.id);
      const { standing } = job.place as { standing: Standing };
      const rank = turn ? TURN_RANK : rankOf(at.rule, job.lane.band);
      stepOut(tables, standing);
      const now: Standing = { ...standing, gate: at.gate, rank, reason };
      job.place = { state: "parked", standing: now };
      stand(tables, now, job);
    }
    for (const [gate, until] of knocks) knock(tables, gate, until);
    count += admitted.length;
    if (closed) return count;
  }
}

/** What was knocked at in the step in hand is looked at before it ends. */
export function openFresh(tables: Tables): void {
  while (tables.fresh.size > 0) {
    const gates = [...tables.fresh].sort();
    tables.fresh.clear();
    for (const gate of gates) visit(tables, gate);
  }
}
