/**
 * Whether an attempt of that job under that lease is recorded, for each row of a statement: looked up job by job. Written as
 * `exists`, the planner may join the rows with the view, which is every attempt there is.
 */
export function isRecorded(job: string, lease: string): string {
  return `coalesce((select true from pawl.any_attempt r where r.job = ${job} and r.lease = ${lease} limit 1), false)`;
}
