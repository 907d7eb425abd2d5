import { checkPace } from "../../core/limits/token-bucket.js";
import { checkKeys, checkObject, checkOneOf, checkWhole, invalid } from "../../core/values/option.js";
import { BULK_VERBS, type BulkOptions, type BulkReport, type BulkVerb, type JobFilter, type Jobs } from "../scheduler.js";
import { BulkCounter } from "./bulk-counter.js";
import { checkOptionalReason } from "./check-reason.js";
import type { JobView } from "./view.js";

const JOBS_PER_PAGE = 500;
const MAX_CONCURRENT_CHANGES = 16;
const BULK_KEYS: ReadonlySet<string> = new Set(["limit", "pace", "reason"] satisfies (keyof BulkOptions)[]);

/** One verb on each job of a filter, by the verbs of single jobs: the same for a store in this process and for a service. */
export async function changeAll(jobs: Jobs, verb: BulkVerb, filter: JobFilter, how: BulkOptions = {}): Promise<BulkReport> {
  checkOneOf("verb", verb, BULK_VERBS);
  const { maxJobs, pace, reason } = checkBulkOptions(verb, how);
  const change = changeOf(jobs, verb, pace, reason);
  const wanted = checkBulkFilter(verb, filter);
  const counter = new BulkCounter();
  let cursor: string | undefined;
  do {
    const page = await jobs.list(wanted, { limit: JOBS_PER_PAGE, ...(cursor === undefined ? {} : { cursor }) });
    for (let at = 0; at < page.items.length && counter.count < maxJobs; ) {
      const end = at + Math.min(MAX_CONCURRENT_CHANGES, maxJobs - counter.count);
      await Promise.all(page.items.slice(at, end).map((job) => counter.change(job.id, async () => void (await change(job)))));
      at = end;
    }
    cursor = page.next;
  } while (cursor !== undefined && counter.count < maxJobs);
  return counter.report();
}

function changeOf(jobs: Jobs, verb: BulkVerb, pace: number, reason: string | undefined): (job: JobView) => Promise<unknown> {
  if (verb !== "redrive") return (job) => jobs[verb](job, reason);
  let index = 0;
  return (job) => jobs.redrive(job, { ...(pace === 0 ? {} : { delay: Math.round(index++ * pace) }), ...(reason === undefined ? {} : { reason }) });
}

/** Which jobs a verb on many is about: redrive is for dead ones. */
export function checkBulkFilter(verb: BulkVerb, filter: JobFilter): JobFilter {
  const { state } = checkObject("filter", filter) as JobFilter;
  if (verb !== "redrive") return filter;
  if (state !== undefined && state !== "dead") throw invalid("filter.state", "redrive is for dead jobs");
  return { ...filter, state: "dead" };
}

export function checkBulkOptions(verb: BulkVerb, how: BulkOptions, keys = BULK_KEYS) {
  checkKeys(checkObject("how", how), keys, `${verb}.`);
  if (how.pace !== undefined && verb !== "redrive") throw invalid("pace", "it is for redrive");
  const pace = how.pace === undefined ? 0 : checkPace("pace", how.pace);
  if (how.pace !== undefined && pace === 0) throw invalid("pace", "it must be longer than nothing");
  return {
    maxJobs: how.limit === undefined ? Number.POSITIVE_INFINITY : checkWhole("limit", how.limit, 1, Number.MAX_SAFE_INTEGER),
    /** ms between two */
    pace,
    reason: checkOptionalReason(how.reason),
  };
}
