import { dueTimes, type JobId } from "../../core/id.js";
import type { Intent, JobOptions } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import type { PolicyRef } from "../../core/policy.js";
import type { Claimed, ClaimedJob, ClaimRequest, SuspectRequest } from "../port-leases.js";
import { plainArray, textArray } from "./arrays.js";
import { type AnswerRow, heldOf, nothingOf, read, type Taken, type TakenJob } from "./claim-answer.js";
import { CLAIM, CLAIM_SUSPECT } from "./claim-statements.js";
import type { Db } from "./db.js";
import { type Facts, readApart } from "./facts-apart.js";
import type { From, LaneBounds } from "./lane-bounds.js";
import { laneParameters } from "./lanes-table.js";
import { laneOf } from "./pending.js";
import type { Workers } from "./workers.js";

/** Others may hold the only rows there are: what they put back is there a moment later. */
const LOOKS_WHEN_LOCKED_OUT = 4;

export interface Claiming {
  readonly db: Db;
  readonly workers: Workers;
  readonly bounds: LaneBounds;
}

/** `limitsChecked`: the caller has seen to the limits that the lanes are under. */
export async function claim({ db, workers, bounds }: Claiming, request: ClaimRequest, limitsChecked = false): Promise<Claimed | undefined> {
  const { quotas } = request;
  if (quotas.length === 0) return undefined;
  const worker = await workers.id(request.worker);
  let lockedOut = 0;
  for (let sweep = false; ; sweep = true) {
    // All of them, or two lanes would send each other round for ever.
    if (sweep) for (const { lane } of quotas) bounds.wake(lane);
    const now = bounds.monotonic();
    const from = quotas.map(({ lane }) => bounds.from(lane, now));
    const [row] = await ask(db, worker, request, from, limitsChecked);
    const taken = read(row, quotas);
    const held = heldOf(row, quotas);
    const more = new Set(held);
    (taken?.offers ?? quotas.map(nothingOf)).forEach((offer, index) => {
      const { sure, front, passed } = from[index] as From;
      if (front !== undefined) bounds.frontGave(offer.lane, { count: offer.front, more: offer.front >= offer.quota });
      if (offer.last !== undefined) bounds.claimed(offer.lane, offer.last, offer.count, now);
      if (offer.count >= offer.quota || (sure && !passed)) return;
      more.add(offer.lane);
      // It gave less than asked for from where rows were likely, not from where they may be.
      if (!sure) bounds.wake(offer.lane);
    });
    if (taken !== undefined) return { ...(await claimedOf(db, taken)), ...(more.size === 0 ? {} : { more: [...more] }) };
    if (held.length > 0 ? ++lockedOut >= LOOKS_WHEN_LOCKED_OUT : more.size === 0 || sweep) return undefined;
  }
}

function ask(
  db: Db,
  worker: number,
  { quotas, duration }: ClaimRequest,
  from: readonly From[],
  limitsChecked: boolean,
): Promise<readonly AnswerRow[]> {
  const [queue, band, tenant, task] = laneParameters(quotas.map(({ lane }) => lane));
  return db.query<AnswerRow>(
    CLAIM.statement,
    CLAIM.values({
      now: db.now(),
      worker,
      duration,
      limits_checked: limitsChecked,
      queue,
      band,
      tenant,
      task,
      front: plainArray(from.map(({ front }) => front)),
      bound: plainArray(from.map(({ seq }) => seq)),
      quota: plainArray(quotas.map(({ quota }) => quota)),
    }),
  );
}

interface SuspectRow extends Lane {
  readonly lease: Claimed["lease"];
  readonly now: number;
  readonly job: JobId;
  readonly spent: number;
  readonly crashes: number;
  readonly intent: Intent | null;
}

export async function claimSuspect(
  db: Db,
  workers: Workers,
  { queues, tasks, bands, tenants, ...request }: SuspectRequest,
  /** limits that have room for it; it is taken from under no others */
  open: readonly PolicyRef[] = [],
): Promise<Claimed | undefined> {
  const worker = await workers.id(request.worker);
  const [row] = await db.query<SuspectRow>(CLAIM_SUSPECT, [
    db.now(),
    worker,
    request.duration,
    textArray(tasks),
    queues === undefined ? null : textArray(queues),
    bands === undefined ? null : plainArray(bands),
    tenants === undefined ? null : textArray(tenants),
    textArray(open.map(({ kind }) => kind)),
    textArray(open.map(({ name }) => name)),
  ]);
  if (row === undefined) return undefined;
  const { lease, now, job: id, spent, crashes, intent } = row;
  const job = { id, lane: laneOf(row), spent, crashes, carried: undefined };
  const intents = intent === null ? undefined : ({ [id]: intent } as Record<JobId, Intent>);
  return claimedOf(db, { lease, now, jobs: [job], facts: new Map(), intents });
}

async function claimedOf(db: Db, { lease, now, jobs, facts, intents }: Omit<Taken, "offers">): Promise<Claimed> {
  const missing = jobs.flatMap(({ id, carried }) => (carried === undefined && !facts.has(id) ? id : []));
  const apart = missing.length === 0 ? undefined : await readApart(db, missing);
  const dueOf = dueTimes();
  const claimed = jobs.map((job, index) =>
    claimedJob(job, index + 1, job.carried ?? facts.get(job.id) ?? apart?.get(job.id), dueOf, intents?.[job.id]),
  );
  return { lease, now, jobs: claimed };
}

function claimedJob(
  { id, lane, spent, crashes }: TakenJob,
  place: number,
  facts: Facts | undefined,
  dueOf: (id: JobId) => number,
  intent: Intent | undefined,
): ClaimedJob {
  const job: ClaimedJob = {
    id,
    lane,
    input: facts?.input,
    options: facts?.options == null ? undefined : (JSON.parse(facts.options) as JobOptions),
    dueAt: facts?.at ?? dueOf(id),
    spent,
    crashes,
    at: facts === undefined ? undefined : { place, home: facts.home },
  };
  return intent === undefined ? job : { ...job, intent };
}
