import { type Fingerprint, isFingerprint } from "../../core/jobs/fingerprint.js";
import { JOB_STATES } from "../../core/jobs/job.js";
import { checkName } from "../../core/values/name.js";
import type { Scope } from "../../store/port/index.js";
import type { StoredJobFilter } from "../../store/port/jobs/jobs.js";
import type { PartRequest } from "../../store/port/jobs/pages.js";
import { checkInstant, checkKeys, checkObject, checkOneOf, checkText, invalid, show } from "../check.js";
import { type CursorFormat, type PageOptions, readPage } from "../page.js";
import type { JobFilter } from "../scheduler.js";
import { type BoundedPage, JOBS_CURSOR } from "./pages.js";

const FILTER_KEYS = new Set(["state", "queue", "task", "tag", "uniqueKey", "failure", "fingerprint", "since", "until", "tenant"]);
/** of inputs, outputs and failures, in one page of anything */
export const MAX_PAGE_BYTES = 4 * 1_048_576;

/** Whose jobs are meant, and which. A tenant's own scope cannot be left by asking for another tenant. */
export function checkFilter(scope: Scope, filter: JobFilter = {}): { readonly scope: Scope; readonly filter: StoredJobFilter } {
  checkKeys(checkObject("filter", filter), FILTER_KEYS, "filter.");
  const { tenant, state, queue, task, tag, uniqueKey, failure, fingerprint, since, until } = filter;
  return {
    scope: narrowScope(scope, tenant),
    filter: {
      ...(state === undefined ? {} : { state: checkOneOf("filter.state", state, JOB_STATES) }),
      ...(queue === undefined ? {} : { queue: checkName("queue", queue, "filter.queue") }),
      ...(task === undefined ? {} : { task: checkName("task", task, "filter.task") }),
      ...(tag === undefined ? {} : { tag: checkName("tag", tag, "filter.tag") }),
      ...(uniqueKey === undefined ? {} : { uniqueKey: checkName("key", uniqueKey, "filter.uniqueKey") }),
      ...(failure === undefined ? {} : { failure: checkFailure(failure) }),
      ...(fingerprint === undefined ? {} : { fingerprint: checkFingerprint(fingerprint) }),
      ...checkDueRange(since, until),
    },
  };
}

/** The same for a filter that is carried out later, by somebody else. */
export function checkJobsFilter(filter: JobFilter): void {
  checkFilter("everyone", filter);
}

function checkDueRange(from: unknown, before: unknown): Pick<StoredJobFilter, "since" | "until"> {
  const due = {
    ...(from === undefined ? {} : { since: checkInstant("filter.since", from) }),
    ...(before === undefined ? {} : { until: checkInstant("filter.until", before) }),
  };
  if (due.since !== undefined && due.until !== undefined && due.since > due.until) throw invalid("filter.since", "it is after filter.until");
  return due;
}

export function checkJobsPage(page?: PageOptions): BoundedPage {
  return { ...readPage(page, JOBS_CURSOR), bytes: MAX_PAGE_BYTES };
}

export function checkPartPage(page: PageOptions | undefined, format: CursorFormat<number>): PartRequest {
  return { after: 0, ...readPage(page, format), bytes: MAX_PAGE_BYTES };
}

/** A kind, or the class of what was thrown: no name of ours, so no rule for names. */
function checkFailure(failure: unknown): string {
  if (typeof failure === "string" && failure !== "" && failure.length <= 200) return checkText("filter.failure", failure);
  throw invalid("filter.failure", `${show(failure)} is no kind or class of failures`);
}

function checkFingerprint(value: unknown): Fingerprint {
  if (isFingerprint(value)) return value;
  throw invalid("filter.fingerprint", `${show(value)} is not the 16 hex digits that pawl.dead.groups() tells`);
}

function narrowScope(scope: Scope, tenant: string | undefined): Scope {
  if (tenant === undefined) return scope;
  checkName("tenant", tenant, "filter.tenant");
  if (scope !== "everyone" && scope.tenant !== tenant) throw invalid("filter.tenant", `this scheduler acts for ${show(scope.tenant)} only`);
  return { tenant };
}
