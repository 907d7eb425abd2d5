import { dueTimeOf, type JobId } from "../../../core/jobs/id.js";
import type { Intent } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import type { PolicyRef } from "../../../core/sharing/policy.js";
import type { Claimed, ClaimedJob, ClaimRequest, SuspectRequest } from "../../port/settle/leases.js";
import type { Db } from "../connection/db.js";
import { laneColumns } from "../connection/lane-numbers.js";
import { sqlFile } from "../connection/sql-statement.js";
import { laneOf } from "../jobs/waiting-jobs.js";
import { type AnswerRow, type ClaimAnswer, decodeClaim, emptyOffer, lockedLanes, withDetails } from "./claim-answer.js";
import { readJobDetails } from "./job-details.js";
import type { ClaimStart, LaneStarts } from "./lane-starts.js";
import type { WorkerIds } from "./worker-ids.js";

const CLAIM = sqlFile("claim/claim.sql", { hot: "claim" });
const CLAIM_SUSPECT = sqlFile("claim/claim-suspect.sql");

/** Others may hold the only rows there are: what they put back is there a moment later. */
const MAX_TRIES_WHEN_LOCKED_OUT = 4;

export interface ClaimDeps {
  readonly db: Db;
  readonly workers: WorkerIds;
  readonly knownLanes: LaneStarts;
}

/** `limitsChecked`: the caller has seen to the limits that the lanes are under. */
export async function claim({ db, workers, knownLanes }: ClaimDeps, request: ClaimRequest, limitsChecked = false): Promise<Claimed | undefined> {
  const { quotas } = request;
  if (quotas.length === 0) return undefined;
  const worker = await workers.id(request.worker);
  let triesLockedOut = 0;
  for (let sweep = false; ; sweep = true) {
    // All of them, or two lanes would send each other round for ever.
    if (sweep) for (const { lane } of quotas) knownLanes.sweepNext(lane);
    const now = knownLanes.monotonic();
    const from = quotas.map(({ lane }) => knownLanes.from(lane, now));
    const [row] = await runClaim(db, worker, request, from, limitsChecked);
    const answer = decodeClaim(row, quotas);
    const locked = lockedLanes(row, quotas);
    const more = new Set(locked);
    (answer?.offers ?? quotas.map(emptyOffer)).forEach((offer, index) => {
      const { sure, admittedFrom, admittedSkipped } = from[index] as ClaimStart;
      if (admittedFrom !== undefined)
        knownLanes.admittedClaimed(offer.lane, { count: offer.admittedSection, more: offer.admittedSection >= offer.quota });
      if (offer.last !== undefined) knownLanes.claimed(offer.lane, offer.last, offer.count, now);
      if (offer.count >= offer.quota || (sure && !admittedSkipped)) return;
      more.add(offer.lane);
      // It gave less than asked for from where rows were likely, not from where they may be.
      if (!sure) knownLanes.sweepNext(offer.lane);
    });
    if (answer !== undefined) return { ...(await complete(db, answer)), ...(more.size === 0 ? {} : { more: [...more] }) };
    if (locked.length > 0 ? ++triesLockedOut >= MAX_TRIES_WHEN_LOCKED_OUT : more.size === 0 || sweep) return undefined;
  }
}

function runClaim(
  db: Db,
  worker: number,
  { quotas, duration }: ClaimRequest,
  from: readonly ClaimStart[],
  limitsChecked: boolean,
): Promise<readonly AnswerRow[]> {
  return CLAIM.query<AnswerRow>(db, {
    now: db.now(),
    worker,
    duration,
    limitsChecked,
    offer: {
      ...laneColumns(quotas.map(({ lane }) => lane)),
      admittedSection: from.map(({ admittedFrom }) => admittedFrom),
      bound: from.map(({ seq }) => seq),
      quota: quotas.map(({ quota }) => quota),
    },
  });
}

interface SuspectRow extends Lane {
  readonly lease: Claimed["lease"];
  readonly now: number;
  readonly job: JobId;
  readonly attempts: number;
  readonly crashes: number;
  readonly intent: Intent | null;
}

export async function claimSuspect(
  db: Db,
  workers: WorkerIds,
  { queues, tasks, priorities, tenants, ...request }: SuspectRequest,
  /** limits that have room for it; it is taken from under no others */
  openLimits: readonly PolicyRef[] = [],
): Promise<Claimed | undefined> {
  const worker = await workers.id(request.worker);
  const [row] = await CLAIM_SUSPECT.query<SuspectRow>(db, {
    now: db.now(),
    worker,
    duration: request.duration,
    tasks,
    queues: queues ?? null,
    priorities: priorities ?? null,
    tenants: tenants ?? null,
    openLimit: { kind: openLimits.map(({ kind }) => kind), name: openLimits.map(({ name }) => name) },
  });
  if (row === undefined) return undefined;
  const { lease, now, job: id, attempts, crashes, intent } = row;
  const job: ClaimedJob = { id, lane: laneOf(row), input: undefined, options: undefined, dueAt: dueTimeOf(id), attempts, crashes };
  return complete(db, { lease, now, jobs: [intent === null ? job : { ...job, intent }], lacking: [0] });
}

/** Reads what the claim did not bring along: details of jobs with large inputs, and of those that outlived their partition. */
async function complete(db: Db, { lease, now, jobs, lacking }: Omit<ClaimAnswer, "offers">): Promise<Claimed> {
  if (lacking.length === 0) return { lease, now, jobs };
  const details = await readJobDetails(
    db,
    lacking.map((index) => (jobs[index] as ClaimedJob).id),
  );
  for (const index of lacking) {
    const job = jobs[index] as ClaimedJob;
    jobs[index] = withDetails(job, index + 1, details.get(job.id));
  }
  return { lease, now, jobs };
}
