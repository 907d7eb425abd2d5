import type { LeasedJob, PulledJob, RemoteLease } from "pawl/service";

/**
 * A claim's answer as JSON. Inputs are stored as JSON and go out as they are: reading them only to write them again
 * would cost more than everything else about a claim.
 */
export function claimAnswer(leases: readonly RemoteLease[], arrivedAt: number): string {
  const now = performance.now();
  return `{"leases":[${leases.map((lease) => leaseText(lease, arrivedAt, now)).join(",")}]}`;
}

/** How long ago a lease began is told by when the request came: the worker knows when it sent it, and so is never too late. */
function leaseText({ lease, claimedAt, now, duration, suspect, jobs }: RemoteLease, arrivedAt: number, at: number): string {
  const after = Math.floor(claimedAt - arrivedAt);
  return `{"lease":"${lease}","beganAfter":${after},"now":"${isoTime(now + at - claimedAt)}","duration":${duration},"suspect":${suspect},"jobs":[${jobs.map(jobText).join(",")}]}`;
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

function jobText({ id, lane, input, options, dueAt, attempts, crashes, timeout }: LeasedJob): string {
  const facts: Omit<PulledJob, "input" | "undecryptable"> = {
    id,
    task: lane.task,
    queue: lane.queue,
    priority: lane.priority,
    tenant: lane.tenant,
    attempt: attempts + 1,
    timeout,
    dueAt: isoTime(dueAt),
    crashes,
    ...(options === undefined ? {} : { options }),
  };
  return `${JSON.stringify(facts).slice(0, -1)},"input":${input === null ? 'null,"undecryptable":true' : input}}`;
}
