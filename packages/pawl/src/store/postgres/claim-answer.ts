import type { JobId, LeaseId } from "../../core/id.js";
import type { Intent } from "../../core/job.js";
import type { Lane } from "../../core/lane.js";
import type { Quota } from "../../core/offer.js";
import type { Facts } from "./facts-apart.js";
import { SEPARATOR } from "./ready-rows.js";

/** Between the facts of two jobs, and between those of one: JSON cannot hold these characters anywhere. */
export const RECORD = SEPARATOR;
export const FIELD = "\u001f";

/** The one row that a claim answers with: texts of entries in the order of the claim, by row or by job. */
export interface AnswerRow {
  readonly lease: LeaseId | null;
  readonly now: number;
  /** by job */
  readonly jobs: string;
  /** By row: the place of its first job in the lane. */
  readonly seqs: string | null;
  /** by row: how many jobs; null: one each */
  readonly counts: string | null;
  /** by row: the number of its lane among those offered, from 1; null: the first one's */
  readonly lanes: string | null;
  /** by row; null: zero */
  readonly spent: string | null;
  readonly crashes: string | null;
  /** by job; empty: its row does not carry it, and the job is looked up. Null: no row does */
  readonly inputs: string | null;
  /** by job; empty: it has none */
  readonly options: string | null;
  /** of jobs whose rows carry no inputs */
  readonly facts: string | null;
  readonly intents: string | null;
  /** numbers of lanes that gave less than their quota while another claim held some of their jobs */
  readonly held: string | null;
}

/** An offered lane, and what it gave. */
export interface Offer extends Quota {
  count: number;
  /** how many of them were at the front */
  front: number;
  /** the place of the last of the others */
  last: number | undefined;
}

/** A job of a claim. */
export interface TakenJob {
  readonly id: JobId;
  readonly lane: Lane;
  readonly spent: number;
  readonly crashes: number;
  /** what its row carried; undefined: it is looked up */
  readonly carried: Facts | undefined;
}

export interface Taken {
  readonly lease: LeaseId;
  readonly now: number;
  readonly jobs: readonly TakenJob[];
  readonly offers: readonly Offer[];
  readonly facts: ReadonlyMap<JobId, Facts>;
  readonly intents: Readonly<Record<JobId, Intent>> | undefined;
}

export function read(row: AnswerRow | undefined, quotas: readonly Quota[]): Taken | undefined {
  if (row?.lease == null || row.seqs === null) return undefined;
  const ids = row.jobs.split(",") as JobId[];
  const [counts, lanes, spent, crashes] = [row.counts, row.lanes, row.spent, row.crashes].map((text) => text?.split(","));
  const [inputs, options] = [row.inputs, row.options].map((text) => text?.split(SEPARATOR));
  const offers = quotas.map(nothingOf);
  const jobs: TakenJob[] = [];
  row.seqs.split(",").forEach((text, index) => {
    const seq = Number(text);
    const count = counts === undefined ? 1 : Number(counts[index]);
    const offer = offers[lanes === undefined ? 0 : Number(lanes[index]) - 1] as Offer;
    offer.count += count;
    if (seq < 0) offer.front += count;
    else offer.last = seq + count - 1;
    const tries = { spent: spent === undefined ? 0 : Number(spent[index]), crashes: crashes === undefined ? 0 : Number(crashes[index]) };
    for (let nth = 0; nth < count; nth++) {
      const place = jobs.length;
      const input = inputs?.[place];
      // A row that carries inputs stands at the numbers of its jobs. The due time is in the id.
      const carried = input === undefined || input === "" ? undefined : { home: seq + nth, input, options: options?.[place] || null, at: null };
      jobs.push({ id: ids[place] as JobId, lane: offer.lane, ...tries, carried });
    }
  });
  const intents = row.intents === null ? undefined : (JSON.parse(row.intents) as Record<JobId, Intent>);
  return { lease: row.lease, now: row.now, jobs, offers, facts: readFacts(row.facts), intents };
}

/** Lanes of which another claim holds jobs, some of which it may put back. */
export function heldOf(row: AnswerRow | undefined, quotas: readonly Quota[]): readonly Lane[] {
  return row?.held == null ? [] : row.held.split(",").map((no) => (quotas[Number(no) - 1] as Quota).lane);
}

export const nothingOf = ({ lane, quota }: Quota): Offer => ({ lane, quota, count: 0, front: 0, last: undefined });

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
