import { dueTimes, type JobId, type LeaseId } from "../../../core/jobs/id.js";
import type { Intent, JobOptions } from "../../../core/jobs/job.js";
import type { Lane } from "../../../core/jobs/lane.js";
import type { Quota } from "../../../core/sharing/claim-plan.js";
import type { ClaimedJob } from "../../port/settle/leases.js";
import { FIELD_SEPARATOR, RECORD_SEPARATOR } from "../connection/sql-constants.js";
import type { JobDetails } from "./job-details.js";

/** The one row that a claim answers with: texts of entries in the order of the claim, by row or by job. */
export interface AnswerRow {
  readonly lease: LeaseId | null;
  readonly now: number;
  /** by job */
  readonly jobs: string;
  /** By row: the position of its first job in the lane. */
  readonly seqs: string | null;
  /** by row: how many jobs; null: one each */
  readonly counts: string | null;
  /** by row: the number of its lane among those offered, from 1; null: the first one's */
  readonly lanes: string | null;
  /** by row; null: zero */
  readonly attempts: string | null;
  readonly crashes: string | null;
  /** by job; empty: its row does not carry it, and the job is looked up. Null: no row does */
  readonly inputs: string | null;
  /** by job; empty: it has none */
  readonly options: string | null;
  /** of jobs whose rows carry no inputs */
  readonly details: string | null;
  readonly intents: string | null;
  /** numbers of lanes that gave less than their quota while another claim held some of their jobs */
  readonly locked: string | null;
}

/** An offered lane, and what it gave. */
export interface OfferAnswer extends Quota {
  count: number;
  /** how many of them were in the admitted section */
  admittedSection: number;
  /** the position of the last of the others */
  last: number | undefined;
}

export interface ClaimAnswer {
  readonly lease: LeaseId;
  readonly now: number;
  readonly jobs: ClaimedJob[];
  readonly offers: readonly OfferAnswer[];
  /** Indexes in `jobs` of those whose input, options and home number are still to be read. */
  readonly lacking: readonly number[];
}

/** Makes each job once, as the worker gets it: a claim has hundreds, and a hundred thousand come in a second. */
export function decodeClaim(row: AnswerRow | undefined, quotas: readonly Quota[]): ClaimAnswer | undefined {
  if (row?.lease == null || row.seqs === null) return undefined;
  const ids = row.jobs.split(",") as JobId[];
  const [counts, lanes, attempts, crashes] = [row.counts, row.lanes, row.attempts, row.crashes].map((text) => text?.split(","));
  const [inputs, options] = [row.inputs, row.options].map((text) => text?.split(RECORD_SEPARATOR));
  const intents = row.intents === null ? undefined : (JSON.parse(row.intents) as Record<JobId, Intent>);
  const details = readDetails(row.details);
  const dueOf = dueTimes();
  const offers = quotas.map(emptyOffer);
  const jobs: ClaimedJob[] = [];
  const lacking: number[] = [];
  row.seqs.split(",").forEach((text, index) => {
    const seq = Number(text);
    const count = counts === undefined ? 1 : Number(counts[index]);
    const offer = offers[lanes === undefined ? 0 : Number(lanes[index]) - 1] as OfferAnswer;
    const { lane } = offer;
    offer.count += count;
    if (seq < 0) offer.admittedSection += count;
    else offer.last = seq + count - 1;
    const attemptsOfRow = attempts === undefined ? 0 : Number(attempts[index]);
    const crashesOfRow = crashes === undefined ? 0 : Number(crashes[index]);
    for (let nth = 0; nth < count; nth++) {
      const jobIndex = jobs.length;
      const id = ids[jobIndex] as JobId;
      const job = { id, lane, attempts: attemptsOfRow, crashes: crashesOfRow };
      const input = inputs?.[jobIndex];
      const carried = input !== undefined && input !== "";
      const found = carried ? undefined : details.get(id);
      // A row that carries inputs stands at the numbers of its jobs. The due time is in the id.
      const claimed = carried
        ? claimedJob(job, jobIndex + 1, seq + nth, input, options?.[jobIndex] || null, dueOf(id))
        : claimedJob(job, jobIndex + 1, found?.home, found?.input, found?.options ?? null, found?.at ?? dueOf(id));
      if (!carried && found === undefined) lacking.push(jobIndex);
      const intent = intents?.[id];
      jobs.push(intent === undefined ? claimed : { ...claimed, intent });
    }
  });
  return { lease: row.lease, now: row.now, jobs, offers, lacking };
}

/** `index`: in its lease, from 1. Without a home number its row is missing: it dies alone. */
function claimedJob(
  { id, lane, attempts, crashes }: Pick<ClaimedJob, "id" | "lane" | "attempts" | "crashes">,
  index: number,
  home: number | undefined,
  input: string | undefined,
  options: string | null,
  dueAt: number,
): ClaimedJob {
  return {
    id,
    lane,
    input,
    options: options === null ? undefined : (JSON.parse(options) as JobOptions),
    dueAt,
    attempts,
    crashes,
    at: home === undefined ? undefined : { index, home },
  };
}

/** The same job with what was read of it apart from the claim. */
export function withDetails(job: ClaimedJob, index: number, details: JobDetails | undefined): ClaimedJob {
  if (details === undefined) return job;
  const { home, input, options, at } = details;
  const claimed = claimedJob(job, index, home, input, options, at ?? job.dueAt);
  return job.intent === undefined ? claimed : { ...claimed, intent: job.intent };
}

/** Lanes of which another claim holds jobs, some of which it may put back. */
export function lockedLanes(row: AnswerRow | undefined, quotas: readonly Quota[]): readonly Lane[] {
  return row?.locked == null ? [] : row.locked.split(",").map((no) => (quotas[Number(no) - 1] as Quota).lane);
}

export const emptyOffer = ({ lane, quota }: Quota): OfferAnswer => ({ lane, quota, count: 0, admittedSection: 0, last: undefined });

const ID_LENGTH = 36;

function readDetails(text: string | null): ReadonlyMap<JobId, JobDetails> {
  const details = new Map<JobId, JobDetails>();
  if (text === null) return details;
  for (const record of text.split(RECORD_SEPARATOR)) {
    const id = record.slice(0, ID_LENGTH) as JobId;
    const from = record.indexOf(FIELD_SEPARATOR, ID_LENGTH) + 1;
    const home = Number(record.slice(ID_LENGTH, from - 1));
    const end = record.indexOf(FIELD_SEPARATOR, from);
    if (end === -1) details.set(id, { home, input: record.slice(from), options: null, at: null });
    else {
      const next = record.indexOf(FIELD_SEPARATOR, end + 1);
      details.set(id, { home, input: record.slice(from, end), options: record.slice(next + 1), at: Number(record.slice(end + 1, next)) });
    }
  }
  return details;
}
