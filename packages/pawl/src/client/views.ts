import type { AuditView } from "../scheduler/audit.js";
import type { BreakerView } from "../scheduler/breakers.js";
import type { Explanation } from "../scheduler/explain.js";
import type { KeyView } from "../scheduler/keys.js";
import type { LimitView } from "../scheduler/limits-view.js";
import type { ScheduleView, TickView } from "../scheduler/schedule-view.js";
import type { DeadGroupView } from "../scheduler/scheduler.js";
import type { BackfillReport, PreviewedTick } from "../scheduler/schedules.js";
import type { SeriesPointView, SeriesView } from "../scheduler/series.js";
import type { TargetView } from "../scheduler/targets.js";
import type { LiveWorkerView } from "../scheduler/unserved.js";
import type { AttemptView, JobView, LogView } from "../scheduler/view.js";

/** Views as JSON carries them, made what they are again: times are dates. */

function withDates<V>(names: readonly (keyof V & string)[]): (told: unknown) => V {
  return (told) => {
    const view = { ...(told as Record<string, unknown>) };
    for (const name of names) if (typeof view[name] === "string") view[name] = new Date(view[name]);
    return view as V;
  };
}

export const jobView = withDates<JobView>(["createdAt", "dueAt", "runAt", "finishedAt"]);
export const attemptView = withDates<AttemptView>(["startedAt", "finishedAt"]);
export const logView = withDates<LogView>(["at"]);
export const explanation = withDates<Explanation>(["estimatedStart"]);
export const scheduleView = withDates<ScheduleView>(["at", "start", "end", "missingSince", "pausedSince", "next", "createdAt", "changedAt"]);
export const tickView = withDates<Record<string, unknown>>(["at", "firedAt", "from", "to", "into"]) as unknown as (told: unknown) => TickView;
export const previewedTick = withDates<PreviewedTick>(["at", "firesAt"]);
export const breakerView = withDates<BreakerView>(["since", "probeAt"]);
export const limitView = withDates<LimitView>(["fullAt", "pausedUntil"]);
export const keyView = withDates<KeyView>(["createdAt", "expiresAt", "revokedAt", "lastUsedAt"]);
export const targetView = withDates<TargetView>(["createdAt", "changedAt", "goneAt"]);
export const auditView = withDates<AuditView>(["at"]);
export const workerView = withDates<LiveWorkerView>(["since", "oldest"]);

const group = withDates<DeadGroupView>(["firstSeen", "lastSeen"]);
export function deadGroup(told: unknown): DeadGroupView {
  const view = group(told);
  return { ...view, sample: jobView(view.sample) };
}

export function backfillReport(told: unknown): BackfillReport {
  const report = told as BackfillReport;
  return { ...report, missing: report.missing.map((at) => new Date(at)) };
}

const span = withDates<SeriesView>(["from", "to"]);
const point = withDates<SeriesPointView>(["at"]);
export function seriesView(told: unknown): SeriesView {
  const view = span(told);
  return { ...view, series: view.series.map((one) => ({ ...one, points: one.points.map(point) })) };
}
