import type { Events, Pawl } from "pawl";
import { messageOf } from "../errors/message-of.js";

/** One thing that happened, as people read it. */
export interface Entry {
  readonly kind: "enqueued" | "good" | "again" | "dead" | "note" | "trouble";
  /** the task, or who speaks */
  readonly subject: string;
  readonly text: string;
}

/** Words for what happens, in one place. Calls back with each, until the answer is called. */
export function entriesOf(pawl: Pawl, hear: (entry: Entry) => void): () => void {
  const stops = [
    pawl.on("jobs.enqueued", ({ count, lanes }) => {
      hear({ kind: "enqueued", subject: [...new Set(lanes.map(({ task }) => task))].join(", "), text: `${plural(count, "job")} enqueued` });
    }),
    pawl.on("attempt.settled", (event) => hear(settled(event))),
    pawl.on("attempt.stale", ({ job }) => hear({ kind: "trouble", subject: "worker", text: `job ${job} is no longer ours: its outcome was let go` })),
    pawl.on("lease.lost", ({ jobs, why }) => hear({ kind: "trouble", subject: "worker", text: `lost a lease on ${plural(jobs, "job")}: ${why}` })),
    pawl.on("leases.reaped", ({ jobs }) => {
      if (jobs > 0) hear({ kind: "note", subject: "reaper", text: `took back ${plural(jobs, "job")} of a worker that vanished` });
    }),
    pawl.on("duty.failed", ({ duty, error }) => hear({ kind: "trouble", subject: duty, text: messageOf(error) })),
    pawl.on("store.lost", ({ error }) => hear({ kind: "trouble", subject: "store", text: `cannot be reached: ${messageOf(error)}` })),
    pawl.on("store.back", ({ away }) => hear({ kind: "note", subject: "store", text: `is back after ${duration(away)}` })),
  ];
  return () => {
    for (const stop of stops) stop();
  };
}

function settled({ lane, attempt, outcome, next, duration: took, failure, delay }: Events["attempt.settled"]): Entry {
  const subject = lane.task;
  const why = failure === undefined ? "" : `: ${failure.message}`;
  if (next === "dead") return { kind: "dead", subject, text: `dead after ${plural(attempt, "attempt")}${why}` };
  switch (outcome) {
    case "succeeded":
      return { kind: "good", subject, text: `succeeded in ${duration(took)}` };
    case "failed":
      return { kind: "again", subject, text: `attempt ${attempt} failed${why}; again in ${duration(delay ?? 0)}` };
    case "snoozed":
      return { kind: "again", subject, text: `not now; again in ${duration(delay ?? 0)}` };
    case "released":
      return { kind: "note", subject, text: "given back unfinished; no attempt spent" };
    default:
      return { kind: "note", subject, text: outcome };
  }
}

export function plural(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** ms in the unit people would use */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  return elapsed(ms);
}

/** h:mm:ss, or m:ss */
export function elapsed(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  const parts = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  const shown = parts[0] === 0 ? parts.slice(1) : parts;
  return shown.map((part, i) => (i === 0 ? String(part) : String(part).padStart(2, "0"))).join(":");
}
