import { hash32 } from "../values/hash.js";
import { digitsOf, idSuffixOf, type JobId } from "./id.js";
import type { JobOptions, NewJob, Spread } from "./job.js";

/** The part of a window (ms) that is a seed's own: always the same, and even over many seeds. */
export function shareOf(window: number | undefined, seed: string): number {
  return window === undefined || window === 0 ? 0 : hash32(`${seed}\u0001spread`) % window;
}

function partOf(spread: Spread | undefined, seed: string): number {
  if (spread === undefined || typeof spread === "number") return shareOf(spread, seed);
  const [min, max] = spread;
  return min + shareOf(max - min, seed);
}

/** One of a herd: it is due its own share of the window later, so that the herd starts evenly and not at one instant. */
export function spreadOut(job: NewJob): NewJob {
  const share = partOf(job.options?.spread, digitsOf(job.idSuffix));
  if (share === 0) return job;
  return job.runAt === undefined ? { ...job, delay: (job.delay ?? 0) + share } : { ...job, runAt: job.runAt + share };
}

/** ms by which a stored job was moved. Its id tells, so nothing more is stored. */
export function movedBy(id: JobId, options: JobOptions): number {
  return partOf(options.spread, digitsOf(idSuffixOf(id)));
}
