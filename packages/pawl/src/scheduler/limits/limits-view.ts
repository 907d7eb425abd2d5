import type { JobId } from "../../core/jobs/id.js";
import type { LimitReason, LimitRule } from "../../core/limits/limit-rule.js";
import { checkName } from "../../core/values/name.js";
import type { Store } from "../../store/port/index.js";
import type { LimitKeyFilter, LimitKeyRef, WaitingLimitKey } from "../../store/port/limits.js";
import { checkKeys, checkObject, checkPageKeys, checkWhole, invalid } from "../check.js";

/** A key of a limit at which jobs wait. */
export interface LimitView extends LimitKeyRef, LimitRule {
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

/** `limit` is of a tenant, and `key` of a limit. */
export interface LimitsFilter {
  readonly tenant?: string;
  readonly limit?: string;
  readonly key?: string;
}

export interface LimitsPageOptions {
  readonly limit?: number;
  readonly after?: LimitKeyRef;
}

export interface LimitListing {
  readonly limits: readonly LimitView[];
  readonly next?: LimitKeyRef;
}

/** Limits on keys as they stand. */
export interface LimitsOperator {
  /** Keys at which jobs wait, by tenant, limit and key; `next` is the `after` of the following page. */
  list(filter?: LimitsFilter, page?: LimitsPageOptions): Promise<LimitListing>;
}

const REF_KEYS: ReadonlySet<string> = new Set(["tenant", "limit", "key"] satisfies (keyof LimitKeyRef)[]);
const PAGE = { size: 50, largest: 1_000 } as const;

export function limitsOperator({ limits }: Store): LimitsOperator {
  return {
    async list(filter = {}, page = {}) {
      const { limit: size, ...after } = checkLimitsPage(page);
      // One more than asked for tells whether there are more.
      const found = await limits.list(limitKeyFilterOf(filter), { limit: size + 1, ...after });
      const last = found[size - 1];
      const next = found.length > size && last !== undefined ? { next: { tenant: last.tenant, limit: last.limit, key: last.key } } : {};
      return { limits: found.slice(0, size).map(limitView), ...next };
    },
  };
}

export function checkLimitsPage(page: LimitsPageOptions): LimitsPageOptions & { readonly limit: number } {
  checkPageKeys(page);
  const limit = checkWhole("page.limit", page.limit ?? PAGE.size, 1, PAGE.largest);
  return { limit, ...(page.after === undefined ? {} : { after: refOf(page.after) }) };
}

export function checkLimitsFilter(filter: LimitsFilter): LimitsFilter {
  checkKeys(checkObject("filter", filter), REF_KEYS, "filter.");
  return filter;
}

function refOf(ref: LimitKeyRef): LimitKeyRef {
  checkKeys(checkObject("page.after", ref), REF_KEYS, "page.after.");
  return { tenant: checkName("tenant", ref.tenant), limit: checkName("limit", ref.limit), key: checkName("limit key", ref.key) };
}

function limitKeyFilterOf(filter: LimitsFilter): LimitKeyFilter {
  const { tenant, limit, key } = checkLimitsFilter(filter);
  if (tenant === undefined && (limit ?? key) !== undefined) throw invalid("filter.tenant", "it is missing: a limit is of one tenant");
  if (limit === undefined && key !== undefined) throw invalid("filter.limit", "it is missing: a key is of one limit");
  if (tenant === undefined) return {};
  if (limit === undefined) return { tenant: checkName("tenant", tenant) };
  const tenantAndLimit = { tenant: checkName("tenant", tenant), limit: checkName("limit", limit) };
  return key === undefined ? tenantAndLimit : { ...tenantAndLimit, key: checkName("limit key", key) };
}

function limitView({ tenant, limit, key, rule, fullAt, pausedUntil, next, ...counts }: WaitingLimitKey): LimitView {
  return {
    tenant,
    limit,
    key,
    ...rule,
    ...counts,
    ...(fullAt === undefined ? {} : { fullAt: new Date(fullAt) }),
    ...(pausedUntil === undefined ? {} : { pausedUntil: new Date(pausedUntil) }),
    next: { job: next.job, for: next.reason },
  };
}
