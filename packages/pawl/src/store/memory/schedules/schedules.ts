import type { IdSuffixSource, JobId } from "../../../core/jobs/id.js";
import { type Enqueued, isFinished, type NewJob } from "../../../core/jobs/job.js";
import { compareText } from "../../../core/jobs/lane.js";
import { duePlan, firstTick, type PlannedFire } from "../../../core/schedules/due-ticks.js";
import { plannedAt } from "../../../core/schedules/recurrence.js";
import {
  type FiredTick,
  jobOfTick,
  openJobs,
  type ScheduleRecord,
  type ScheduleRef,
  seedOf,
  type TickWay,
} from "../../../core/schedules/schedule.js";
import { afterPut } from "../../../core/schedules/schedule-change.js";
import type { ScheduleFilter, SchedulePut, SchedulePutAnswer, ScheduleStore, TickEntry, TickReport } from "../../port/schedules/schedules.js";
import { cancelNow, enqueue } from "../jobs/enqueue.js";
import { erase, lastOf } from "../jobs/history.js";
import { leave } from "../jobs/move.js";
import type { MemoryJob, MemorySchedule, Tables } from "../state.js";

export function memorySchedules(tables: Tables): ScheduleStore {
  const find = (ref: ScheduleRef) => tables.schedules.get(seedOf(ref));
  const change = (ref: ScheduleRef, act: (row: MemorySchedule) => void) =>
    tables.step(() => {
      const row = find(ref);
      if (row !== undefined) act(row);
      return row !== undefined;
    });
  return {
    put: (entries, app) =>
      tables.step(() => {
        const answers = entries.map((entry) => putOne(tables, entry, app));
        return { answers, missing: app === undefined ? [] : flagMissing(tables, entries, app) };
      }),
    get: (ref) => tables.step(() => find(ref)?.record),
    list: (scope, filter, { limit, after }) =>
      tables.step(() => {
        const found = [...tables.schedules.values()]
          .map(({ record }) => record)
          .filter((record) => (scope === "everyone" || record.tenant === scope.tenant) && matches(record, filter))
          .filter((record) => after === undefined || compareRefs(record, after) > 0)
          .sort(compareRefs);
        const schedules = found.slice(0, limit);
        const last = schedules.at(-1);
        return { schedules, ...(found.length > limit && last !== undefined ? { next: { tenant: last.tenant, name: last.name } } : {}) };
      }),
    pause: (ref) =>
      change(ref, (row) => {
        const { looksAt: _, ...record } = row.record;
        row.record = { ...record, pausedSince: record.pausedSince ?? tables.now };
      }),
    resume: (ref) =>
      change(ref, (row) => {
        const { pausedSince, ...record } = row.record;
        if (pausedSince === undefined) return;
        const looksAt = record.next === undefined ? undefined : Math.max(tables.now, plannedAt(record.definition, seedOf(ref), record.next));
        row.record = { ...record, ...(looksAt === undefined ? {} : { looksAt }) };
        wakeup(tables, looksAt);
      }),
    delete: (ref) => change(ref, () => void tables.schedules.delete(seedOf(ref))),
    trigger: (ref, { idSuffix, input, idempotencyKey }) =>
      tables.step(() => {
        const row = find(ref);
        if (row === undefined) return undefined;
        let at = tables.now;
        while (row.triggered.has(at)) at += 1;
        const job = jobOfTick(row.record, { at, way: "triggered", merged: 0 }, idSuffix);
        return enqueueTick(
          tables,
          row,
          { at, way: "triggered", merged: 0 },
          { ...job, ...(input === undefined ? {} : { input }), ...(idempotencyKey === undefined ? {} : { idempotencyKey }) },
        );
      }),
    backfill: (ref, { ticks, after, pace, idSuffix }) =>
      tables.step(() => {
        const row = find(ref);
        if (row === undefined) return undefined;
        const missing = ticks.filter((at) => !row.fired.has(at));
        const answers = missing.map((at, nth) => {
          const tick = { at, way: "backfilled", merged: 0 } as const;
          return enqueueTick(tables, row, tick, {
            ...jobOfTick(row.record, tick, idSuffix(row.record.definition.job.lane.tenant)),
            delay: after + nth * pace,
          });
        });
        return answers.filter(({ kind }) => kind === "created").length;
      }),
    ticks: (ref, { limit, before = Number.POSITIVE_INFINITY }) =>
      tables.step(() => {
        const row = find(ref);
        const entries: TickEntry[] = row === undefined ? [] : [...firedOf(row), ...row.gaps];
        return entries
          .filter((entry) => timeOf(entry) < before)
          .sort((a, b) => timeOf(b) - timeOf(a))
          .slice(0, limit);
      }),
    fired: (ref, ticks) => tables.step(() => ticks.filter((at) => find(ref)?.fired.has(at))),
  };
}

function putOne(tables: Tables, { tenant, name, definition: newDefinition }: SchedulePut, app: string | undefined): SchedulePutAnswer {
  const ref = { tenant, name };
  const old = tables.schedules.get(seedOf(ref));
  const { answer, ...stored } = afterPut(old?.record, newDefinition, app);
  if (old !== undefined && answer === "unchanged") {
    const { undeclaredSince: _, app: __, declared: ___, ...record } = old.record;
    old.record = { ...record, ...stored };
    return answer;
  }
  const { now } = tables;
  const { next, looksAt } = firstTick(stored.definition, seedOf(ref), now);
  const pausedSince = old?.record.pausedSince;
  const record: ScheduleRecord = {
    ...ref,
    ...stored,
    revision: (old?.record.revision ?? 0) + 1,
    ...(pausedSince === undefined ? {} : { pausedSince }),
    ...(next === undefined ? {} : { next }),
    ...(looksAt === undefined || pausedSince !== undefined ? {} : { looksAt }),
    createdAt: old?.record.createdAt ?? now,
    changedAt: now,
  };
  wakeup(tables, record.looksAt);
  if (old !== undefined) old.record = record;
  else tables.schedules.set(seedOf(ref), { record, open: [], fired: new Map(), triggered: new Map(), gaps: [] });
  return answer;
}

function flagMissing(tables: Tables, entries: readonly SchedulePut[], app: string): readonly ScheduleRef[] {
  const there = new Set(entries.map(seedOf));
  const gone = [...tables.schedules.values()].filter(({ record }) => record.app === app && !there.has(seedOf(record)));
  for (const row of gone) row.record = { ...row.record, undeclaredSince: row.record.undeclaredSince ?? tables.now };
  return gone.map(({ record: { tenant, name } }) => ({ tenant, name })).sort(compareRefs);
}

/** A tick of each due schedule, by `duePlan`: the jobs, the record of every tick, and the next one are stored in the same step. */
export function tick(tables: Tables, limit: number, idSuffix: IdSuffixSource): Omit<TickReport, "failures"> {
  const due = [...tables.schedules.values()]
    .filter(({ record }) => record.looksAt !== undefined && record.looksAt <= tables.now)
    .sort((a, b) => (a.record.looksAt as number) - (b.record.looksAt as number))
    .slice(0, limit);
  const latest = due.reduce((most, { record }) => Math.max(most, tables.now - (record.looksAt as number)), 0);
  const jobs = due.reduce((sum, row) => sum + tickOne(tables, row, idSuffix), 0);
  const times = [...tables.schedules.values()].flatMap(({ record }) => record.looksAt ?? []);
  const next = times.length === 0 ? {} : { nextIn: Math.max(0, times.reduce((a, b) => Math.min(a, b)) - tables.now) };
  return { schedules: due.length, jobs, latest, ...next };
}

function tickOne(tables: Tables, row: MemorySchedule, idSuffix: IdSuffixSource): number {
  const { next: due, looksAt: _, ...record } = row.record;
  if (record.definition.overlap !== "allow") row.open = row.open.filter((id) => !isOver(tables, id));
  const plan = duePlan({ seed: seedOf(record), definition: record.definition, next: due as number, unfinished: row.open.length }, tables.now);
  row.gaps = [...row.gaps, ...plan.gaps.map((gap) => ({ ...gap, seenAt: tables.now }))];
  let jobs = 0;
  for (const fire of plan.fires) {
    // A backfill may have been there before.
    if (row.fired.has(fire.at)) continue;
    if (
      enqueueTick(tables, row, fire, withOverlap(tables, row, fire, jobOfTick(record, fire, idSuffix(record.definition.job.lane.tenant)))).kind ===
      "created"
    )
      jobs += 1;
  }
  const { next, looksAt } = plan;
  row.record = { ...record, ...(next === undefined ? {} : { next }), ...(looksAt === undefined ? {} : { looksAt }) };
  return jobs;
}

/** It runs after what is unfinished, however that ends; if it was told to, it has it end now. */
function withOverlap(tables: Tables, row: MemorySchedule, { overlap }: PlannedFire, job: NewJob): NewJob {
  if (overlap === undefined) return job;
  if (overlap === "cancel") for (const id of row.open) cancelOrAsk(tables, tables.jobs.get(id) as MemoryJob);
  const parents = row.open.filter((id) => !isOver(tables, id));
  return parents.length === 0 ? job : { ...job, dependsOn: { parents, onDependencyDeath: "run" } };
}

function cancelOrAsk(tables: Tables, job: MemoryJob): void {
  if (job.status.state === "running") {
    tables.intents.set(job.id, { intent: "cancel", reason: "the next tick of its schedule came" });
    tables.wakeups.intent = true;
  } else cancelNow(tables, job, "the next tick of its schedule came");
}

function enqueueTick(tables: Tables, row: MemorySchedule, tick: { at: number; way: TickWay; merged: number }, job: NewJob): Enqueued {
  const [answer] = enqueue(tables, [job]) as readonly [Enqueued];
  const { at, way, merged } = tick;
  if (answer.kind === "created") {
    (way === "triggered" ? row.triggered : row.fired).set(at, { at, way, firedAt: tables.now, job: answer.id, merged });
    row.open = openJobs(row.open, [answer.id]);
  } else if (way !== "triggered") row.gaps = [...row.gaps, { from: at, to: at, count: 1, seenAt: tables.now, skipped: "key" }];
  return answer;
}

/** Drops finished jobs beyond what their schedule keeps, and the record of ticks older than that many ms. */
export function trim(tables: Tables, limit: number, age: number): number {
  let trimmed = 0;
  for (const row of tables.schedules.values()) {
    const { succeeded, dead } = row.record.definition.keep ?? {};
    const kept = {
      succeeded: succeeded ?? Number.POSITIVE_INFINITY,
      cancelled: succeeded ?? Number.POSITIVE_INFINITY,
      dead: dead ?? Number.POSITIVE_INFINITY,
    };
    const seen = { succeeded: 0, cancelled: 0, dead: 0 };
    for (const { job } of firedOf(row).sort((a, b) => b.at - a.at)) {
      const found = tables.jobs.get(job);
      if (found === undefined || !isFinished(found.status.state)) continue;
      const state = found.status.state as keyof typeof seen;
      seen[state] += 1;
      if (seen[state] <= kept[state] || trimmed >= limit || lastOf(found) === undefined) continue;
      leave(tables, found);
      erase(tables, found);
      trimmed += 1;
    }
    for (const ticks of [row.fired, row.triggered]) for (const [at, { firedAt }] of ticks) if (firedAt + age <= tables.now) ticks.delete(at);
    row.gaps = row.gaps.filter(({ seenAt }) => seenAt + age > tables.now);
  }
  return trimmed;
}

function firedOf(row: MemorySchedule): FiredTick[] {
  return [...row.fired.values(), ...row.triggered.values()];
}

function isOver(tables: Tables, id: JobId): boolean {
  const job = tables.jobs.get(id);
  return job === undefined || isFinished(job.status.state);
}

function wakeup(tables: Tables, looksAt: number | undefined): void {
  if (looksAt !== undefined) tables.wakeups.tickAt = Math.min(tables.wakeups.tickAt ?? looksAt, looksAt);
}

function matches(record: ScheduleRecord, { undeclared, paused }: ScheduleFilter): boolean {
  return (
    (undeclared === undefined || undeclared === (record.undeclaredSince !== undefined)) &&
    (paused === undefined || paused === (record.pausedSince !== undefined))
  );
}

function compareRefs(a: ScheduleRef, b: ScheduleRef): number {
  return compareText(a.tenant, b.tenant) || compareText(a.name, b.name);
}

export function timeOf(entry: TickEntry): number {
  return "at" in entry ? (entry as FiredTick).at : entry.to;
}
