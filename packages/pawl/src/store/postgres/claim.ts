import { dueTimes, type JobId, type LeaseId } from "../../core/id.js";
import type { Intent, JobOptions } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import type { Quota } from "../../core/offer.js";
import type { PolicyRef } from "../../core/policy.js";
import type { Claimed, ClaimedJob, ClaimRequest, SuspectRequest } from "../port-leases.js";
import { plainArray, textArray } from "./arrays.js";
import type { HeldLeases, Run } from "./bundles.js";
import { type About, type AnswerRow, CLAIM, CLAIM_FRONTS, CLAIM_LANES, CLAIM_ROWS, CLAIM_SUSPECT, FIELD, RECORD } from "./claim-statements.js";
import type { Db } from "./db.js";
import type { Statement } from "./drivers/driver.js";
import { type Facts, readApart } from "./facts-apart.js";
import type { From, LaneBounds } from "./lane-bounds.js";
import { laneParameters } from "./lanes-table.js";
import type { ParcelGuess } from "./parcels.js";
import type { Workers } from "./workers.js";

interface TakenRun extends Run {
  readonly carried: boolean;
}

/** An offered lane, and what it gave: so many from this place on among those that were taken. */
interface Offer extends Quota {
  start: number;
  count: number;
  /** how many of them were at the front */
  front: number;
  /** the seq of the last of the others */
  last: number | undefined;
}

interface Taken extends Pick<About, "spent" | "crashes"> {
  readonly lease: LeaseId;
  readonly now: number;
  readonly jobs: readonly JobId[];
  readonly facts: ReadonlyMap<JobId, Facts>;
  readonly offers: readonly Offer[];
  /** numbers of lanes that have no parcels */
  readonly unpacked: readonly number[];
  readonly runs: readonly TakenRun[];
  /** by the places of their jobs */
  readonly inputs: readonly (string | undefined)[];
  readonly intents: Readonly<Record<JobId, Intent>> | undefined;
}

function read(row: AnswerRow | undefined, quotas: readonly Quota[]): Taken | undefined {
  if (row?.lease == null) return undefined;
  const { lease, now } = row;
  const about = JSON.parse(row.about) as About;
  const jobs = row.jobs.split(",") as JobId[];
  const offers = offersOf(about.lane === undefined ? quotas : [{ lane: about.lane, quota: 1 }], about, jobs.length);
  const runs = runsOf(about, offers);
  return {
    lease,
    now,
    jobs,
    facts: readFacts(row.facts),
    offers,
    runs,
    inputs: readInputs(row.inputs, runs),
    spent: about.spent,
    crashes: about.crashes,
    unpacked: about.unpacked ?? [],
    intents: row.intents === null ? undefined : (JSON.parse(row.intents) as Record<JobId, Intent>),
  };
}

const nothingOf = ({ lane, quota }: Quota): Offer => ({ lane, quota, start: 0, count: 0, front: 0, last: undefined });

function offersOf(quotas: readonly Quota[], { runs, rows, last }: About, count: number): readonly Offer[] {
  const offers = quotas.map(nothingOf);
  if (rows === undefined) return offers.map((only) => ({ ...only, count, last }));
  rows?.no.forEach((no, index) => {
    const offer = offers[no - 1] as Offer;
    offer.count = rows.count[index] as number;
    offer.front = rows.front?.[index] ?? 0;
    if (offer.count > offer.front) offer.last = rows.last[index];
  });
  runs?.no.forEach((no, index) => {
    const offer = offers[no - 1] as Offer;
    const taken = runs.count[index] as number;
    offer.count += taken;
    offer.last = Math.max(offer.last ?? 0, (runs.seq[index] as number) + taken - 1);
  });
  let start = 0;
  for (const offer of offers) {
    offer.start = start;
    start += offer.count;
  }
  return offers;
}

function runsOf({ runs }: About, offers: readonly Offer[]): readonly TakenRun[] {
  if (runs == null) return [];
  return runs.seq.map((seq, index) => {
    const { start, front } = offers[(runs.no[index] as number) - 1] as Offer;
    const from = start + front + (runs.before[index] as number) + 1;
    return { seq, from, to: from + (runs.count[index] as number) - 1, carried: runs.bare?.[index] !== true };
  });
}

const ID_LENGTH = 36;

function readFacts(text: string | null): ReadonlyMap<JobId, Facts> {
  const facts = new Map<JobId, Facts>();
  if (text === null) return facts;
  for (const record of text.split(RECORD)) {
    const id = record.slice(0, ID_LENGTH) as JobId;
    const end = record.indexOf(FIELD, ID_LENGTH);
    if (end === -1) facts.set(id, { input: record.slice(ID_LENGTH), options: null, at: null });
    else {
      const next = record.indexOf(FIELD, end + 1);
      facts.set(id, { input: record.slice(ID_LENGTH, end), options: record.slice(next + 1), at: Number(record.slice(end + 1, next)) });
    }
  }
  return facts;
}

function readInputs(text: string | null, runs: readonly TakenRun[]): readonly (string | undefined)[] {
  const inputs: (string | undefined)[] = [];
  if (text === null) return inputs;
  const given = text.split(RECORD);
  let next = 0;
  for (const { from, to, carried } of runs) if (carried) for (let place = from; place <= to; place++) inputs[place - 1] = given[next++];
  return inputs;
}

/** Others may be taking out of the only parcels there are: what they leave is there a moment later. */
const LOOKS_WHEN_LOCKED_OUT = 4;

export interface Claiming {
  readonly db: Db;
  readonly workers: Workers;
  readonly bounds: LaneBounds;
  readonly guess: ParcelGuess;
  readonly held: HeldLeases;
}

export async function claim(
  { db, workers, bounds, guess, held }: Claiming,
  request: ClaimRequest,
  limited?: Statement,
): Promise<Claimed | undefined> {
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
    const left = row?.left === true;
    if (quotas.length === 1) for (const { lane } of quotas) bounds.hasParcels(lane, left || (row?.parcels ?? 0) > 0);
    const count = taken?.jobs.length ?? 0;
    const offers = taken?.offers ?? quotas.map(nothingOf);
    const atFronts = offers.reduce((sum, { front }) => sum + front, 0);
    for (const no of taken?.unpacked ?? []) bounds.unpacked((quotas[no - 1] as Quota).lane);
    let more: true | undefined = left || undefined;
    offers.forEach((offer, index) => {
      const { sure, front, passed } = from[index] as From;
      if (front !== undefined) bounds.frontGave(offer.lane, { count: offer.front, more: offer.front >= offer.quota || atFronts >= request.limit });
      if (offer.last !== undefined) bounds.claimed(offer.lane, offer.last, offer.count, now);
      if (count >= request.limit || offer.count >= offer.quota) return;
      if (passed) more = true;
      if (sure) return;
      // It gave less than asked for from where rows were likely, not from where they may be.
      bounds.wake(offer.lane);
      more = true;
    });
    if (taken !== undefined) held.add(taken.lease, taken.jobs, taken.runs);
    if (taken !== undefined) return { ...(await claimedOf(db, taken)), ...(more === undefined ? {} : { more }) };
    if (left ? ++lockedOut >= LOOKS_WHEN_LOCKED_OUT : more === undefined || sweep) return undefined;
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
  { jobs, facts, inputs, intents, spent, crashes }: Taken,
  place: number,
  lane: Lane,
  apart: ReadonlyMap<JobId, Facts> | undefined,
  dueOf: (id: JobId) => number,
): ClaimedJob {
  const id = jobs[place] as JobId;
  const carried = inputs[place];
  const known = carried === undefined ? (facts.get(id) ?? apart?.get(id)) : undefined;
  const job: ClaimedJob = {
    id,
    lane,
    input: carried ?? known?.input,
    options: known?.options == null ? undefined : (JSON.parse(known.options) as JobOptions),
    dueAt: known?.at ?? dueOf(id),
    spent: spent?.[place] ?? 0,
    crashes: crashes?.[place] ?? 0,
  };
  const intent = intents?.[id];
  return intent === undefined ? job : { ...job, intent };
}
