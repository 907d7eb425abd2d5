import { type Fingerprint, isFingerprint } from "../core/fingerprint.js";
import type { JobId } from "../core/id.js";
import { STATES } from "../core/job.js";
import { checkName } from "../core/name.js";
import type { Scope } from "../store/port.js";
import type { JobFilter } from "../store/port-jobs.js";
import type { PartRequest } from "../store/port-pages.js";
import { checkInstant, checkKeys, checkObject, checkOneOf, checkPageKeys, checkText, checkWhole, invalid, show } from "./check.js";
import { idOf } from "./given.js";
import type { BoundedPage } from "./pages.js";
import type { JobsFilter } from "./scheduler.js";

const FILTER_KEYS = new Set(["state", "queue", "task", "tag", "key", "failure", "fingerprint", "dueFrom", "dueBefore", "tenant"]);
const PAGE_SIZE = 50;
const LARGEST_PAGE = 1_000;
/** of inputs, outputs and failures, in one page of anything */
export const PAGE_BYTES = 4 * 1_048_576;

/** Whose jobs are meant, and which. A tenant's own scope cannot be left by asking for another tenant. */
export function checkFilter(scope: Scope, filter: JobsFilter = {}): { readonly scope: Scope; readonly filter: JobFilter } {
  checkKeys(checkObject("filter", filter), FILTER_KEYS, "filter.");
  const { tenant, state, queue, task, tag, key, failure, fingerprint, dueFrom, dueBefore } = filter;
  return {
    scope: narrow(scope, tenant),
    filter: {
      ...(state === undefined ? {} : { state: checkOneOf("filter.state", state, STATES) }),
      ...(queue === undefined ? {} : { queue: checkName("queue", queue, "filter.queue") }),
      ...(task === undefined ? {} : { task: checkName("task", task, "filter.task") }),
      ...(tag === undefined ? {} : { tag: checkName("tag", tag, "filter.tag") }),
      ...(key === undefined ? {} : { key: checkName("key", key, "filter.key") }),
      ...(failure === undefined ? {} : { failure: checkFailure(failure) }),
      ...(fingerprint === undefined ? {} : { fingerprint: checkFingerprint(fingerprint) }),
      ...checkDue(dueFrom, dueBefore),
    },
  };
}

/** The same for a filter that is carried out later, by somebody else. */
export function checkJobsFilter(filter: JobsFilter): void {
  checkFilter("everyone", filter);
}

function checkDue(from: unknown, before: unknown): Pick<JobFilter, "dueFrom" | "dueBefore"> {
  const due = {
    ...(from === undefined ? {} : { dueFrom: checkInstant("filter.dueFrom", from) }),
    ...(before === undefined ? {} : { dueBefore: checkInstant("filter.dueBefore", before) }),
  };
  if (due.dueFrom !== undefined && due.dueBefore !== undefined && due.dueFrom > due.dueBefore)
    throw invalid("filter.dueFrom", "it is after filter.dueBefore");
  return due;
}

export function checkPage(page: { readonly limit?: number; readonly after?: string } = {}): BoundedPage {
  checkPageKeys(page);
  const { limit = PAGE_SIZE, after } = page;
  return {
    limit: checkWhole("page.limit", limit, 1, LARGEST_PAGE),
    bytes: PAGE_BYTES,
    ...(after === undefined ? {} : { after: checkAfter(after) }),
  };
}

export function checkPart(page: { readonly limit?: number; readonly after?: number } = {}): PartRequest {
  checkPageKeys(page);
  const { limit = LARGEST_PAGE, after = 0 } = page;
  return {
    limit: checkWhole("page.limit", limit, 1, LARGEST_PAGE),
    after: checkWhole("page.after", after, 0, 2 ** 31 - 1),
    bytes: PAGE_BYTES,
  };
}

function checkAfter(after: string): JobId {
  const id = idOf(after);
  if (id === undefined) throw invalid("page.after", `${show(after)} is not the id a page ended with`);
  return id;
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

function narrow(scope: Scope, tenant: string | undefined): Scope {
  if (tenant === undefined) return scope;
  checkName("tenant", tenant, "filter.tenant");
  if (scope !== "everyone" && scope.tenant !== tenant) throw invalid("filter.tenant", `this scheduler acts for ${show(scope.tenant)} only`);
  return { tenant };
}
