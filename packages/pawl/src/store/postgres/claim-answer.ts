import type { JobId, LeaseId } from "../../core/id.js";
import type { Intent } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import type { Quota } from "../../core/offer.js";
import type { Facts } from "./facts-apart.js";

/** Between the facts of two jobs, and between those of one: JSON cannot hold these characters anywhere. */
export const RECORD = "\u001e";
export const FIELD = "\u001f";

/** The one row that a claim answers with. */
export interface AnswerRow {
  readonly lease: LeaseId | null;
  readonly now: number;
  readonly jobs: string;
  readonly about: string;
  /** of jobs whose inputs did not come along with their parcel */
  readonly facts: string | null;
  /** of the others, in the order of `runs` */
  readonly inputs: string | null;
  /** of jobs that came along with their options, or none */
  readonly options: string | null;
  readonly intents: string | null;
  /** parcels it locked, and the jobs in them */
  readonly parcels: number;
  readonly packed: number;
  /** numbers of lanes that gave less than their quota and may have parcels left, as JSON */
  readonly left: string | null;
}

/** What the jobs of a claim are besides their facts: lane by lane as they were offered, those of each in the order they became ready. */
export interface About {
  readonly runs?: Runs | null;
  /** what came as rows, by lane. Left out where one lane was asked, and not its front: all are of that lane, and `last` is its last */
  readonly rows?: Rows | null;
  /** beside `rows`: lanes that were asked for parcels, and have none */
  readonly unpacked?: readonly number[] | null;
  /** of a suspect */
  readonly lane?: Lane;
  readonly last: number;
  readonly spent: readonly number[] | null;
  readonly crashes: readonly number[] | null;
}

/** Jobs that came out of one parcel each. */
interface Runs {
  /** of which lane, by its number from 1 */
  readonly no: readonly number[];
  /** the place of the first one there */
  readonly seq: readonly number[];
  readonly count: readonly number[];
  /** how many others of the lane come before, those at its front apart */
  readonly before: readonly number[];
  /** whether their inputs did not come along */
  readonly bare: readonly boolean[] | null;
  /** whether their options came along as well */
  readonly told: readonly boolean[] | null;
}

/** By lane. */
interface Rows {
  readonly no: readonly number[];
  readonly count: readonly number[];
  /** the place of the last one in its lane */
  readonly last: readonly number[];
  /** how many were at its front */
  readonly front: readonly number[] | null;
}

/** Jobs of a claim, by their places in it from 1, that came out of one parcel, one after the other. */
interface TakenRun {
  /** the number of the first one */
  readonly seq: number;
  readonly from: number;
  readonly to: number;
  readonly carried: boolean;
  readonly told: boolean;
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

export interface Taken extends Pick<About, "spent" | "crashes"> {
  readonly lease: LeaseId;
  readonly now: number;
  readonly jobs: readonly JobId[];
  readonly facts: ReadonlyMap<JobId, Facts>;
  readonly offers: readonly Offer[];
  /** lanes that have no parcels */
  readonly unpacked: readonly Lane[];
  readonly runs: readonly TakenRun[];
  /** by the places of their jobs */
  readonly inputs: readonly (string | undefined)[];
  readonly options: readonly (string | undefined)[];
  /** numbers of jobs that came out of parcels */
  readonly homes: readonly (number | undefined)[];
  readonly intents: Readonly<Record<JobId, Intent>> | undefined;
}

export function read(row: AnswerRow | undefined, quotas: readonly Quota[]): Taken | undefined {
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
    inputs: inPlace(row.inputs, runs, ({ carried }) => carried),
    options: inPlace(row.options, runs, ({ told }) => told),
    homes: homesOf(runs),
    spent: about.spent,
    crashes: about.crashes,
    unpacked: lanesOf(about.unpacked ?? [], quotas),
    intents: row.intents === null ? undefined : (JSON.parse(row.intents) as Record<JobId, Intent>),
  };
}

/** Lanes of which more may be left than the row has jobs of. */
export function leftOf(row: AnswerRow | undefined, quotas: readonly Quota[]): readonly Lane[] {
  return lanesOf(JSON.parse(row?.left ?? "[]") as readonly number[], quotas);
}

/** By their numbers, from 1. */
function lanesOf(numbers: readonly number[], quotas: readonly Quota[]): readonly Lane[] {
  return numbers.map((no) => (quotas[no - 1] as Quota).lane);
}

export const nothingOf = ({ lane, quota }: Quota): Offer => ({ lane, quota, start: 0, count: 0, front: 0, last: undefined });

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
    return { seq, from, to: from + (runs.count[index] as number) - 1, carried: runs.bare?.[index] !== true, told: runs.told?.[index] === true };
  });
}

const ID_LENGTH = 36;

function readFacts(text: string | null): ReadonlyMap<JobId, Facts> {
  const facts = new Map<JobId, Facts>();
  if (text === null) return facts;
  for (const record of text.split(RECORD)) {
    const id = record.slice(0, ID_LENGTH) as JobId;
    const from = record.indexOf(FIELD, ID_LENGTH) + 1;
    const home = Number(record.slice(ID_LENGTH, from - 1));
    const end = record.indexOf(FIELD, from);
    if (end === -1) facts.set(id, { home, input: record.slice(from), options: null, at: null });
    else {
      const next = record.indexOf(FIELD, end + 1);
      facts.set(id, { home, input: record.slice(from, end), options: record.slice(next + 1), at: Number(record.slice(end + 1, next)) });
    }
  }
  return facts;
}

function homesOf(runs: readonly TakenRun[]): readonly (number | undefined)[] {
  const homes: number[] = [];
  for (const { seq, from, to } of runs) for (let place = from; place <= to; place++) homes[place - 1] = seq + place - from;
  return homes;
}

/** What came along with some of the runs, by the places of their jobs. */
function inPlace(text: string | null, runs: readonly TakenRun[], has: (run: TakenRun) => boolean): readonly (string | undefined)[] {
  const placed: (string | undefined)[] = [];
  if (text === null) return placed;
  const given = text.split(RECORD);
  let next = 0;
  for (const run of runs) if (has(run)) for (let place = run.from; place <= run.to; place++) placed[place - 1] = given[next++];
  return placed;
}
