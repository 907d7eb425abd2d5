import type { GateKey, LimitRule, Pass } from "../../core/limit.js";
import { passesOf, rankOf, reasonOf, TURN_RANK } from "../../core/limit.js";
import type { GateRow, JobRow, Place, Standing, Tables } from "./state.js";

export function passesOfRow({ lane, options }: JobRow): readonly Pass[] {
  return passesOf(lane.tenant, options?.limits ?? []);
}

/** Where a job goes that nothing but its limits keeps from running: into the line of its first gate. */
export function linedUp(tables: Tables, row: JobRow): Place {
  const [first] = passesOfRow(row);
  if (first === undefined) return { state: "ready" };
  knock(tables, first.gate, tables.now);
  const rank = keepsTurn(tables, row, first) ? TURN_RANK : rankOf(first.rule, row.lane.band);
  return { state: "parked", standing: { job: row.id, gate: first.gate, rank, place: tables.nextPlace(), reason: reasonOf(first.rule) } };
}

/** The newest job says what the rule of a key is. */
export function bringRules(tables: Tables, row: JobRow): void {
  for (const { gate, rule } of passesOfRow(row)) gateOf(tables, gate, rule).rule = rule;
}

export function gateOf(tables: Tables, key: GateKey, rule: LimitRule): GateRow {
  let gate = tables.gates.get(key);
  if (gate === undefined) {
    gate = { rule, fullAt: undefined, pausedUntil: undefined, closed: false, line: [] };
    tables.gates.set(key, gate);
  }
  return gate;
}

export function knock(tables: Tables, gate: GateKey, at: number): void {
  tables.knocks.set(gate, Math.min(at, tables.knocks.get(gate) ?? at));
  if (at <= tables.now) tables.fresh.add(gate);
  else tables.hints.admitAt = Math.min(at, tables.hints.admitAt ?? at);
}

export function stand(tables: Tables, standing: Standing, row: JobRow): void {
  const rule = passesOfRow(row).find(({ gate }) => gate === standing.gate)?.rule ?? {};
  const { line } = gateOf(tables, standing.gate, rule);
  const behind = line.findIndex((entry) => entry.rank > standing.rank || (entry.rank === standing.rank && entry.place > standing.place));
  line.splice(behind === -1 ? line.length : behind, 0, standing);
}

export function stepOut(tables: Tables, { gate, job }: Standing): void {
  const line = tables.gates.get(gate)?.line ?? [];
  const place = line.findIndex((entry) => entry.job === job);
  if (place !== -1) line.splice(place, 1);
}

/** What a job that leaves held is free for others. */
export function vacate(tables: Tables, row: JobRow, finished: boolean): void {
  for (const { kind, key } of tables.slots.free(row.id, finished)) {
    if (kind === "key" || kind === "serial" || kind === "rate") knock(tables, key as GateKey, tables.now);
  }
}

export function keepsTurn(tables: Tables, row: JobRow, first: Pass): boolean {
  return tables.slots.holds("serial", first.gate, row.id);
}

/** A longer pause outlasts a shorter one; no time at all ends it. */
export function pauseGate(tables: Tables, key: GateKey, duration: number): void {
  const gate = tables.gates.get(key);
  if (gate === undefined) return;
  gate.pausedUntil = duration === 0 ? undefined : Math.max(gate.pausedUntil ?? 0, tables.now + duration);
  knock(tables, key, tables.now);
}
