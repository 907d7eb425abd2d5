import type { ApiKeyView } from "../../scheduler/access/api-keys.js";
import type { AuditView } from "../../scheduler/access/audit.js";
import type { TargetView } from "../../scheduler/access/targets.js";
import type { AttemptView, JobView, LogView } from "../../scheduler/jobs/view.js";
import type { BreakerView } from "../../scheduler/limits/breakers.js";
import type { LimitView } from "../../scheduler/limits/limits-view.js";
import { type Explanation, REASON_TIMES } from "../../scheduler/observe/explain.js";
import type { LiveWorkerView } from "../../scheduler/observe/lanes-and-workers.js";
import type { SeriesPointView, SeriesView } from "../../scheduler/observe/series.js";
import type { DeadGroupView } from "../../scheduler/scheduler.js";
import type { ScheduleView, TickView } from "../../scheduler/schedules/schedule-view.js";
import type { BackfillReport, PreviewedTick } from "../../scheduler/schedules/schedules.js";

/** Views as JSON carries them, made what they are again: times are dates. */

function withDates<V>(names: readonly (keyof V & string)[]): (value: unknown) => V {
  return (value) => {
    const view = { ...(value as Record<string, unknown>) };
    for (const name of names) if (typeof view[name] === "string") view[name] = new Date(view[name]);
    return view as V;
  };
}

export const jobView = withDates<JobView>(["createdAt", "dueAt", "nextRunAt", "finishedAt"]);
export const attemptView = withDates<AttemptView>(["startedAt", "finishedAt"]);
export const logView = withDates<LogView>(["at"]);
const reason = withDates<Record<(typeof REASON_TIMES)[number], unknown>>(REASON_TIMES);
const explained = withDates<Explanation>(["estimatedStart"]);
export function explanation(value: unknown): Explanation {
  const view = explained(value);
  return { ...view, reasons: view.reasons.map((one) => reason(one) as unknown as Explanation["reasons"][number]) };
}

export const scheduleView = withDates<ScheduleView>(["at", "start", "end", "undeclaredSince", "pausedSince", "next", "createdAt", "changedAt"]);
export const tickView = withDates<Record<string, unknown>>(["at", "firedAt", "from", "to", "into"]) as unknown as (value: unknown) => TickView;
export const previewedTick = withDates<PreviewedTick>(["at", "firesAt"]);
export const breakerView = withDates<BreakerView>(["since", "probeAt"]);
export const limitView = withDates<LimitView>(["fullAt", "pausedUntil"]);
export const keyView = withDates<ApiKeyView>(["createdAt", "expiresAt", "revokedAt", "lastUsedAt"]);
export const targetView = withDates<TargetView>(["createdAt", "changedAt", "goneAt"]);
export const auditView = withDates<AuditView>(["at"]);
export const workerView = withDates<LiveWorkerView>(["since", "oldest"]);

const group = withDates<DeadGroupView>(["firstSeen", "lastSeen"]);
export function deadGroup(value: unknown): DeadGroupView {
  const view = group(value);
  return { ...view, sample: jobView(view.sample) };
}

export function backfillReport(value: unknown): BackfillReport {
  const report = value as BackfillReport;
  return { ...report, missing: report.missing.map((at) => new Date(at)) };
}

const span = withDates<SeriesView>(["from", "to"]);
const point = withDates<SeriesPointView>(["at"]);
export function seriesView(value: unknown): SeriesView {
  const view = span(value);
  return { ...view, series: view.series.map((one) => ({ ...one, points: one.points.map(point) })) };
}
