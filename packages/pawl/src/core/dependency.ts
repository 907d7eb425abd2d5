import { type Failure, failure } from "./failure.js";
import type { JobId } from "./id.js";
import type { State } from "./job.js";

/** What to do with a job when one it depends on is dead or cancelled. */
export type DeathPolicy = "die" | "run" | "wait";

/** What a finished parent means for one job that waits for it. */
export type Release = "satisfied" | "doomed" | "waits";

export function releaseOf(parent: State, onDeath: DeathPolicy): Release {
  if (parent === "succeeded") return "satisfied";
  if (parent !== "dead" && parent !== "cancelled") return "waits";
  return onDeath === "run" ? "satisfied" : onDeath === "die" ? "doomed" : "waits";
}

/** What a job dies of when it dies with one it depends on. */
export function doomedBy(parent: JobId): Failure {
  return failure("dependency", `job ${parent}, which it depends on, did not succeed`);
}
