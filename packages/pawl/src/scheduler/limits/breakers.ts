import { BREAKER_STATES, type BreakerState } from "../../core/limits/breaker.js";
import { checkName } from "../../core/values/name.js";
import { wallClock } from "../../runtime/time/clock.js";
import type { Store } from "../../store/port/index.js";
import type { BreakerFilter, BreakerRecord, BreakerRef } from "../../store/port/limits/breakers.js";
import { checkKeys, checkObject, checkOneOf } from "../check.js";
import { type PagedList, type PageOptions, pagedList, pageOfRows, readPage, refCursor } from "../page.js";

/** A breaker as people see it. */
export interface BreakerView extends BreakerRef {
  /** checking: it opens unless somebody sees successes; half_open: some jobs are let through, more with every step that holds */
  readonly state: BreakerState;
  /** set by a person, until it is reset */
  readonly forced: boolean;
  readonly since: Date;
  /** when one job is let through to find out; only while it is open by itself */
  readonly probeAt?: Date;
  /** jobs each worker may have in hand; only while it is half-open */
  readonly limit?: number;
  /** outcomes counted: of its window, or of this step while it is half-open */
  readonly succeeded: number;
  readonly failed: number;
}

/** Breakers of tenants and tasks. One that has seen no failures lately is closed, and not listed. */
export interface BreakersOperator {
  /** by tenant and task */
  list(filter?: BreakerFilter, page?: PageOptions): PagedList<BreakerView>;
  /** A breaker without recent failures is closed. */
  get(breaker: BreakerRef): Promise<BreakerView>;
  /** No job of this tenant and task is started, in any process, until it is closed or reset. No attempts are spent. */
  open(breaker: BreakerRef): Promise<BreakerView>;
  /** Its jobs are started whatever they come to, until it is opened or reset. */
  close(breaker: BreakerRef): Promise<BreakerView>;
  /** It begins anew, closed, and by itself. */
  reset(breaker: BreakerRef): Promise<BreakerView>;
}

const FILTER_KEYS: ReadonlySet<string> = new Set(["tenant", "task", "state"] satisfies (keyof BreakerFilter)[]);
const REF_KEYS: ReadonlySet<string> = new Set(["tenant", "task"] satisfies (keyof BreakerRef)[]);
const CURSOR = refCursor("breakers", ["tenant", "task"]);

export function breakersOperator({ breakers }: Store): BreakersOperator {
  const force = async (ref: BreakerRef, how: "open" | "closed" | "reset") => breakerView(await breakers.force(refOf("breaker", ref), how));
  return {
    list: (filter = {}, page) =>
      pagedList(page, async (one) => {
        const stored = checkFilter(filter);
        return pageOfRows(readPage(one, CURSOR), CURSOR, (request) => breakers.list(stored, request), {
          place: ({ tenant, task }) => ({ tenant, task }),
          view: breakerView,
        });
      }),
    async get(ref) {
      const { tenant, task } = refOf("breaker", ref);
      const [found] = await breakers.get([{ tenant, task }]);
      // The store has no record of a breaker without recent failures.
      if (found === undefined) return { tenant, task, state: "closed", forced: false, since: new Date(wallClock()), succeeded: 0, failed: 0 };
      return breakerView(found);
    },
    open: (ref) => force(ref, "open"),
    close: (ref) => force(ref, "closed"),
    reset: (ref) => force(ref, "reset"),
  };
}

function refOf(option: string, ref: BreakerRef): BreakerRef {
  checkKeys(checkObject(option, ref), REF_KEYS, `${option}.`);
  return { tenant: checkName("tenant", ref.tenant), task: checkName("task", ref.task) };
}

function checkFilter(filter: BreakerFilter): BreakerFilter {
  checkKeys(checkObject("filter", filter), FILTER_KEYS, "filter.");
  const { tenant, task, state } = filter;
  return {
    ...(tenant === undefined ? {} : { tenant: checkName("tenant", tenant) }),
    ...(task === undefined ? {} : { task: checkName("task", task) }),
    ...(state === undefined ? {} : { state: checkOneOf("filter.state", state, BREAKER_STATES) }),
  };
}

function breakerView({ tenant, task, state, forced, since, probeAt, limit, succeeded, failed }: BreakerRecord): BreakerView {
  return {
    tenant,
    task,
    state,
    forced,
    since: new Date(since),
    ...(probeAt === undefined ? {} : { probeAt: new Date(probeAt) }),
    ...(limit === undefined ? {} : { limit }),
    succeeded,
    failed,
  };
}
