import { hash32 } from "../values/hash.js";
import { digitsOf, idSuffixOf, type JobId } from "./id.js";
import type { JobOptions, NewJob } from "./job.js";

/** The part of a window (ms) that is a seed's own: always the same, and even over many seeds. */
export function shareOf(window: number | undefined, seed: string): number {
  return window === undefined || window === 0 ? 0 : hash32(`${seed}\u0001spread`) % window;
}

/** One of a herd: it is due its own share of the window later, so that the herd starts evenly and not at one instant. */
export function spreadOut(job: NewJob): NewJob {
  const share = shareOf(job.options?.spread, digitsOf(job.idSuffix));
  if (share === 0) return job;
  return job.runAt === undefined ? { ...job, delay: (job.delay ?? 0) + share } : { ...job, runAt: job.runAt + share };
}

/** ms by which a stored job was moved. Its id tells, so nothing more is stored. */
export function movedBy(id: JobId, options: JobOptions): number {
  return shareOf(options.spread, digitsOf(idSuffixOf(id)));
}
