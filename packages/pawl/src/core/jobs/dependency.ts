import { type Failure, failure } from "./failure.js";
import type { JobId } from "./id.js";
import type { JobState } from "./job.js";

/** What to do with a job when one it depends on is dead or cancelled. */
export type DeathPolicy = "die" | "run" | "wait";

/** What a finished parent means for one job that waits for it. */
export type DependencyMeaning = "satisfied" | "dying" | "waits";

export function dependencyMeaning(parent: JobState, onDependencyDeath: DeathPolicy): DependencyMeaning {
  if (parent === "succeeded") return "satisfied";
  if (parent !== "dead" && parent !== "cancelled") return "waits";
  return onDependencyDeath === "run" ? "satisfied" : onDependencyDeath === "die" ? "dying" : "waits";
}

/** What a job dies of when it dies with one it depends on. */
export function failureOfParent(parent: JobId): Failure {
  return failure("dependency", `job ${parent}, which it depends on, did not succeed`);
}
