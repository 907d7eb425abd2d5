import { dueTimes, type JobId } from "../../core/id.js";
import type { JobOptions } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import type { Quota } from "../../core/offer.js";
import type { PolicyRef } from "../../core/policy.js";
import type { Claimed, ClaimedJob, ClaimRequest, SuspectRequest } from "../port-leases.js";
import { plainArray, textArray } from "./arrays.js";
import { type AnswerRow, leftOf, nothingOf, read, type Taken } from "./claim-answer.js";
import { CLAIM, CLAIM_FRONTS, CLAIM_LANES, CLAIM_ROWS, CLAIM_SUSPECT } from "./claim-statements.js";
import type { Db } from "./db.js";
import type { Statement } from "./drivers/driver.js";
import { type Facts, readApart } from "./facts-apart.js";
import type { From, LaneBounds } from "./lane-bounds.js";
import { laneParameters } from "./lanes-table.js";
import type { ParcelGuess } from "./parcels.js";
import type { Workers } from "./workers.js";

/** Others may be taking out of the only parcels there are: what they leave is there a moment later. */
const LOOKS_WHEN_LOCKED_OUT = 4;

export interface Claiming {
  readonly db: Db;
  readonly workers: Workers;
  readonly bounds: LaneBounds;
  readonly guess: ParcelGuess;
}

export async function claim({ db, workers, bounds, guess }: Claiming, request: ClaimRequest, limited?: Statement): Promise<Claimed | undefined> {
  const { quotas } = request;
  if (quotas.length === 0 || request.limit <= 0) return undefined;
  const worker = await workers.id(request.worker);
  let lockedOut = 0;
  for (let sweep = false; ; sweep = true) {
    // All of them, or two lanes would send each other round for ever.
    if (sweep) for (const { lane } of quotas) bounds.wake(lane);
    const now = bounds.monotonic();
    const from = quotas.map(({ lane }) => bounds.from(lane, now));
    const [row] = await ask({ db, guess }, worker, request, from, limited);
    const taken = read(row, quotas);
    if (row !== undefined) guess.saw(row.parcels, row.packed);
    const left = leftOf(row, quotas);
    if (quotas.length === 1) for (const { lane } of quotas) bounds.hasParcels(lane, left.length > 0 || (row?.parcels ?? 0) > 0);
    const count = taken?.jobs.length ?? 0;
    const offers = taken?.offers ?? quotas.map(nothingOf);
    const atFronts = offers.reduce((sum, { front }) => sum + front, 0);
    for (const lane of taken?.unpacked ?? []) bounds.unpacked(lane);
    // A parcel may have come after what this claim saw of the lane, and its wake-up before the answer.
    for (const lane of left) bounds.packed(lane);
    const more = new Set(left);
    offers.forEach((offer, index) => {
      const { sure, front, passed } = from[index] as From;
      if (front !== undefined) bounds.frontGave(offer.lane, { count: offer.front, more: offer.front >= offer.quota || atFronts >= request.limit });
      if (offer.last !== undefined) bounds.claimed(offer.lane, offer.last, offer.count, now);
      if (count >= request.limit || offer.count >= offer.quota) return;
      if (sure && !passed) return;
      more.add(offer.lane);
      // It gave less than asked for from where rows were likely, not from where they may be.
      if (!sure) bounds.wake(offer.lane);
    });
    if (taken !== undefined) return { ...(await claimedOf(db, taken)), ...(more.size === 0 ? {} : { more: [...more] }) };
    if (left.length > 0 ? ++lockedOut >= LOOKS_WHEN_LOCKED_OUT : more.size === 0 || sweep) return undefined;
  }
}

/** By the statement that does no more than is needed: for one lane that had no parcels when last looked at, the light one. */
function ask(
  { db, guess }: Pick<Claiming, "db" | "guess">,
  worker: number,
  { quotas, limit, duration }: ClaimRequest,
  from: readonly From[],
  limited: Statement | undefined,
): Promise<readonly AnswerRow[]> {
  const [{ lane, quota }] = quotas as [Quota];
  const [{ seq, parcels }] = from as [From];
  const fronts = from.some(({ front }) => front !== undefined);
  if (quotas.length === 1 && limited === undefined && !parcels && !fronts) {
    const { queue, band, tenant, task } = lane;
    return db.query<AnswerRow>(CLAIM_ROWS, [db.now(), worker, duration, Math.min(limit, quota), queue, band, tenant, task, seq]);
  }
  return db.query<AnswerRow>(limited ?? (fronts ? CLAIM_FRONTS : quotas.length > 1 ? CLAIM_LANES : CLAIM), [
    db.now(),
    worker,
    duration,
    limit,
    ...laneParameters(quotas.map((one) => one.lane)),
    plainArray(from.map((one) => one.seq)),
    plainArray(quotas.map((one) => one.quota)),
    plainArray(from.map((one) => one.packed)),
    guess.jobs,
    ...(fronts || limited !== undefined ? [plainArray(from.map(({ front }) => front))] : []),
  ]);
}

export async function claimSuspect(
  db: Db,
  workers: Workers,
  { queues, tasks, bands, tenants, ...request }: SuspectRequest,
  /** limits that have room for it; it is taken from under no others */
  open: readonly PolicyRef[] = [],
): Promise<Claimed | undefined> {
  const worker = await workers.id(request.worker);
  const [row] = await db.query<AnswerRow>(CLAIM_SUSPECT, [
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
  const taken = read(row, []);
  return taken === undefined ? undefined : claimedOf(db, taken);
}

async function claimedOf(db: Db, taken: Taken): Promise<Claimed> {
  const { jobs, facts, inputs } = taken;
  const missing = jobs.filter((id, place) => inputs[place] === undefined && !facts.has(id));
  const apart = missing.length === 0 ? undefined : await readApart(db, missing);
  const claimed: ClaimedJob[] = [];
  const dueOf = dueTimes();
  for (const { lane, start, count } of taken.offers) {
    for (let place = start; place < start + count; place++) claimed.push(claimedJob(taken, place, lane, apart, dueOf));
  }
  return { lease: taken.lease, now: taken.now, jobs: claimed };
}

function claimedJob(
  { jobs, facts, inputs, options, homes, intents, spent, crashes }: Taken,
  place: number,
  lane: Lane,
  apart: ReadonlyMap<JobId, Facts> | undefined,
  dueOf: (id: JobId) => number,
): ClaimedJob {
  const id = jobs[place] as JobId;
  const carried = inputs[place];
  const known = carried === undefined ? (facts.get(id) ?? apart?.get(id)) : undefined;
  const said = known?.options ?? options[place];
  const home = known?.home ?? homes[place];
  const job: ClaimedJob = {
    id,
    lane,
    input: carried ?? known?.input,
    // Of one without, where others of its parcel have some, nothing is said.
    options: said === undefined || said === "" ? undefined : (JSON.parse(said) as JobOptions),
    dueAt: known?.at ?? dueOf(id),
    spent: spent?.[place] ?? 0,
    crashes: crashes?.[place] ?? 0,
    at: home === undefined ? undefined : { place: place + 1, home },
  };
  const intent = intents?.[id];
  return intent === undefined ? job : { ...job, intent };
}
