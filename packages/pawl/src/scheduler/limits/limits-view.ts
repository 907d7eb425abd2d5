import type { JobId } from "../../core/jobs/id.js";
import type { LimitReason, LimitRule } from "../../core/limits/limit-rule.js";
import { checkName } from "../../core/values/name.js";
import type { Store } from "../../store/port/index.js";
import type { LimitKeyFilter, WaitingLimitKey } from "../../store/port/limits/limits.js";
import { checkKeys, checkObject, invalid } from "../check.js";
import { type PagedList, type PageOptions, pagedList, pageOfRows, readPage, refCursor } from "../page.js";

/** A key of a limit at which jobs wait. */
export interface LimitView extends LimitRule {
  readonly tenant: string;
  /** of the limit */
  readonly name: string;
  readonly key: string;
  /** jobs of the key that are ready or running, as far as its limit counts them */
  readonly held: number;
  /** jobs that wait, counted up to 1,000; `more`: and others */
  readonly waiting: number;
  readonly more?: true;
  /** whole tokens of its rate that are there now, and when the bucket is full again */
  readonly tokens?: number;
  readonly fullAt?: Date;
  readonly pausedUntil?: Date;
  /** the job that is next, and what it waits for */
  readonly next: { readonly job: JobId; readonly for: LimitReason };
}

/** `name` is that of a limit of the tenant, and `key` one key of it. */
export interface LimitsFilter {
  readonly tenant?: string;
  readonly name?: string;
  readonly key?: string;
}

/** Limits on keys as they stand. */
export interface LimitsOperator {
  /** Keys at which jobs wait, by tenant, limit and key. */
  list(filter?: LimitsFilter, page?: PageOptions): PagedList<LimitView>;
  /** The key of this limit of this tenant; undefined while no job waits there. */
  get(limitKey: Required<LimitsFilter>): Promise<LimitView | undefined>;
}

const FILTER_KEYS: ReadonlySet<string> = new Set(["tenant", "name", "key"] satisfies (keyof LimitsFilter)[]);
const CURSOR = refCursor("limits", ["tenant", "limit", "key"]);

export function limitsOperator({ limits }: Store): LimitsOperator {
  return {
    list: (filter = {}, page) =>
      pagedList(page, async (one) => {
        const stored = limitKeyFilterOf(filter);
        return pageOfRows(readPage(one, CURSOR), CURSOR, (request) => limits.list(stored, request), {
          place: ({ tenant, limit, key }) => ({ tenant, limit, key }),
          view: limitView,
        });
      }),
    async get(limitKey) {
      const [found] = await limits.list(limitKeyFilterOf(checkLimitKey(limitKey)), { limit: 1 });
      return found === undefined ? undefined : limitView(found);
    },
  };
}

/** One key is named in full. */
export function checkLimitKey(limitKey: Required<LimitsFilter>): Required<LimitsFilter> {
  checkKeys(checkObject("limit key", limitKey), FILTER_KEYS);
  return { tenant: checkName("tenant", limitKey.tenant), name: checkName("limit", limitKey.name), key: checkName("limit key", limitKey.key) };
}

export function checkLimitsFilter(filter: LimitsFilter): LimitsFilter {
  checkKeys(checkObject("filter", filter), FILTER_KEYS, "filter.");
  return filter;
}

function limitKeyFilterOf(filter: LimitsFilter): LimitKeyFilter {
  const { tenant, name, key } = checkLimitsFilter(filter);
  if (tenant === undefined && (name ?? key) !== undefined) throw invalid("filter.tenant", "it is missing: a limit is of one tenant");
  if (name === undefined && key !== undefined) throw invalid("filter.name", "it is missing: a key is of one limit");
  if (tenant === undefined) return {};
  if (name === undefined) return { tenant: checkName("tenant", tenant) };
  const tenantAndLimit = { tenant: checkName("tenant", tenant), limit: checkName("limit", name) };
  return key === undefined ? tenantAndLimit : { ...tenantAndLimit, key: checkName("limit key", key) };
}

function limitView({ tenant, limit, key, rule, fullAt, pausedUntil, next, ...counts }: WaitingLimitKey): LimitView {
  return {
    tenant,
    name: limit,
    key,
    ...rule,
    ...counts,
    ...(fullAt === undefined ? {} : { fullAt: new Date(fullAt) }),
    ...(pausedUntil === undefined ? {} : { pausedUntil: new Date(pausedUntil) }),
    next: { job: next.job, for: next.reason },
  };
}
