import type { AttemptView, Explanation, JobState, JobView } from "pawl";
import type { Output } from "../output.js";
import type { Cell, CellStyle } from "../table.js";
import { duration, fromNow, plural, timestamp, valueLines } from "../text.js";
import { nextSteps } from "./next-steps.js";

const STATE_STYLES: Readonly<Record<JobState, CellStyle>> = {
  ready: "bold",
  running: "cyan",
  scheduled: "yellow",
  blocked: "dim",
  parked: "dim",
  succeeded: "green",
  dead: "red",
  cancelled: "dim",
};

export function stateCell(state: JobState): Cell {
  return { text: state, style: STATE_STYLES[state] };
}

export const JOB_HEADINGS = ["id", "state", "task", "queue", "tenant", "attempts", "due", "failure"] as const;

export function jobRow(job: JobView, now: Date): readonly Cell[] {
  const { id, state, task, queue, tenant, attempts, dueAt, failure } = job;
  return [
    id,
    stateCell(state),
    task,
    queue,
    tenant,
    attempts,
    fromNow(dueAt, now),
    failure === undefined ? "" : `${failure.name}: ${failure.message}`,
  ];
}

/** A whole job: what it is, what happened to it, and what comes next. */
export function showJob(out: Output, job: JobView, history: readonly AttemptView[], explanation: Explanation | undefined, now: Date): void {
  const fact = (name: string, ...cells: readonly Cell[]) => out.line({ text: name.padEnd(11), style: "dim" }, ...cells);
  fact("job", { text: job.id, style: "bold" });
  fact(
    "state",
    stateCell(job.state),
    job.parkedFor === undefined ? "" : ` (${job.parkedFor})`,
    job.intent === undefined ? "" : `, asked to ${job.intent}`,
  );
  fact("task", `${job.task} in ${job.queue}, priority ${job.priority}, tenant ${job.tenant}`);
  fact("created", `${timestamp(job.createdAt)} (${fromNow(job.createdAt, now)})`);
  fact("due", `${timestamp(job.dueAt)} (${fromNow(job.dueAt, now)})`);
  if (job.nextRunAt !== undefined) fact("runs", `${timestamp(job.nextRunAt)} (${fromNow(job.nextRunAt, now)})`);
  if (job.finishedAt !== undefined) fact("finished", `${timestamp(job.finishedAt)} (${fromNow(job.finishedAt, now)})`);
  fact("attempts", `${job.attempts} spent${job.crashes > 0 ? `, ${plural(job.crashes, "worker")} vanished with it` : ""}`);
  if (job.uniqueKey !== undefined) fact("unique key", job.uniqueKey);
  if (job.tags.length > 0) fact("tags", job.tags.join(", "));
  if (job.tick !== undefined) fact("schedule", job.tick.schedule);
  if (job.waitsFor !== undefined) fact("waits for", job.waitsFor.join(", "));
  if (job.rerunOf !== undefined) fact("rerun of", job.rerunOf);
  values(out, "input", job.input);
  values(out, "progress", job.progress);
  values(out, "output", job.output);
  timeline(out, history);
  if (explanation !== undefined && explanation.reasons.length > 0) fact("why", explanation.text);
  for (const step of nextSteps(job, explanation)) fact("next", step);
}

function values(out: Output, name: string, value: unknown): void {
  for (const [index, line] of valueLines(value).entries()) out.line({ text: (index === 0 ? name : "").padEnd(11), style: "dim" }, line);
}

function timeline(out: Output, history: readonly AttemptView[]): void {
  if (history.length === 0) return;
  out.line({ text: "history", style: "dim" });
  for (const { outcome, worker, startedAt, duration: took, failure, next } of history) {
    const style: CellStyle = outcome === "succeeded" ? "green" : outcome === "failed" || outcome === "crashed" ? "red" : "yellow";
    const by = worker === undefined ? "" : ` by ${worker}`;
    const why = failure === undefined ? "" : `: ${failure.name}: ${failure.message}`;
    out.line(`  ${timestamp(startedAt)}  ${duration(took).padStart(8)}  `, { text: outcome, style }, `${by} → ${next}${why}`);
    const frame = failure?.stack?.split("\n").find((line) => /^\s+at /.test(line));
    if (frame !== undefined) out.line({ text: `  ${" ".repeat(34)}${frame.trim()}`, style: "dim" });
  }
}
