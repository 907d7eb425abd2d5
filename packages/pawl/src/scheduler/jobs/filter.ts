import type { Scope } from "../../store/port/index.js";
import type { StoredJobFilter } from "../../store/port/jobs/jobs.js";
import type { PartRequest } from "../../store/port/jobs/pages.js";
import { checkKeys, checkObject, invalid, show } from "../check.js";
import { type CursorFormat, type PageOptions, readPage } from "../page.js";
import type { JobFilter } from "../scheduler.js";
import { FILTER_ROWS, FILTER_TABLE } from "./filter-table.js";
import { type BoundedPage, JOBS_CURSOR } from "./pages.js";

const FILTER_KEYS: ReadonlySet<string> = new Set(Object.keys(FILTER_TABLE));
/** of inputs, outputs and failures, in one page of anything */
export const MAX_PAGE_BYTES = 4 * 1_048_576;

/** Whose jobs are meant, and which. A tenant's own scope cannot be left by asking for another tenant. */
export function checkFilter(scope: Scope, filter: JobFilter = {}): { readonly scope: Scope; readonly filter: StoredJobFilter } {
  checkKeys(checkObject("filter", filter), FILTER_KEYS, "filter.");
  const { tenant, ...checked } = Object.fromEntries(
    FILTER_ROWS.flatMap(([name, { check }]) => (filter[name] === undefined ? [] : [[name, check(`filter.${name}`, filter[name])]])),
  ) as StoredJobFilter & { readonly tenant?: string };
  const { since, until } = checked;
  if (since !== undefined && until !== undefined && since > until) throw invalid("filter.since", "it is after filter.until");
  return { scope: narrowScope(scope, tenant), filter: checked };
}

/** The same for a filter that is carried out later, by somebody else. */
export function checkJobsFilter(filter: JobFilter): void {
  checkFilter("everyone", filter);
}

export function checkJobsPage(page?: PageOptions): BoundedPage {
  return { ...readPage(page, JOBS_CURSOR), bytes: MAX_PAGE_BYTES };
}

export function checkPartPage(page: PageOptions | undefined, format: CursorFormat<number>): PartRequest {
  return { after: 0, ...readPage(page, format), bytes: MAX_PAGE_BYTES };
}

function narrowScope(scope: Scope, tenant: string | undefined): Scope {
  if (tenant === undefined) return scope;
  if (scope !== "everyone" && scope.tenant !== tenant) throw invalid("filter.tenant", `this scheduler acts for ${show(scope.tenant)} only`);
  return { tenant };
}
