import { maskedMessage } from "../../core/jobs/fingerprint.js";
import type { Scope, Store } from "../../store/port/index.js";
import type { DeadGroup } from "../../store/port/jobs/dead.js";
import { checkKeys, checkObject, invalid } from "../check.js";
import { numberCursor, type PagedList, type PageOptions, pagedList, readPage } from "../page.js";
import type { BulkOptions, BulkReport, Dead, DeadFilter, DeadGroupsFilter, DeadGroupView, Jobs, RedriveManyOptions } from "../scheduler.js";
import { checkBulkOptions } from "./bulk-change.js";
import { BulkCounter } from "./bulk-counter.js";
import { countJobs } from "./count-jobs.js";
import { checkFilter, MAX_PAGE_BYTES } from "./filter.js";
import type { Redact } from "./redact.js";
import { type JobView, jobView } from "./view.js";

/** Groups are in the order of their size, so a page goes on after as many as were shown. */
const GROUPS_CURSOR = numberCursor("groups");

const JOBS_PER_PAGE = 500;
const MAX_CONCURRENT_CHANGES = 16;

/** Dead jobs, by filter: pages through them and uses the verbs of single jobs, so that one bad job stops nothing. */
export class ScopedDead implements Dead {
  readonly #redact: Redact;

  constructor(
    readonly store: Store,
    readonly scope: Scope,
    readonly jobs: Jobs,
    redact: Redact = (view) => view,
  ) {
    this.#redact = redact;
  }

  list(filter: DeadFilter = {}, page?: PageOptions): PagedList<JobView> {
    return pagedList(page, async (one) => this.jobs.list({ ...checkDead(filter), state: "dead" }, one));
  }

  async count(filter: DeadFilter = {}): Promise<number> {
    const which = checkFilter(this.scope, checkDead(filter));
    return countJobs(this.store, which.scope, { ...which.filter, state: "dead" });
  }

  groups(filter: DeadGroupsFilter = {}, page?: PageOptions): PagedList<DeadGroupView> {
    return pagedList(page, async (one) => {
      checkKeys(checkObject("filter", filter), GROUP_KEYS, "filter.");
      const { limit, after = 0 } = readPage(one, GROUPS_CURSOR);
      const which = checkFilter(this.scope, filter);
      // One more than asked for tells whether there are more.
      const groups = await this.store.dead.groups(which.scope, which.filter, after + limit + 1);
      const end = after + limit;
      return {
        items: groups.slice(after, end).map((group) => {
          const view = groupView(group, this.scope);
          return { ...view, sample: this.#redact(view.sample) };
        }),
        ...(groups.length > end ? { next: GROUPS_CURSOR.encode(end) } : {}),
      };
    });
  }

  async redrive(filter: DeadFilter = {}, how: RedriveManyOptions = {}): Promise<BulkReport> {
    const { maxJobs, pace, reason } = checkBulkOptions("redrive", how, REDRIVE_KEYS);
    const { edit } = how;
    if (edit !== undefined && typeof edit !== "function") throw invalid("edit", "it is not a function");
    return this.#each(filter, maxJobs, async (job, index) => {
      await this.jobs.redrive(job, {
        ...(pace === 0 ? {} : { delay: Math.round(index * pace) }),
        ...(reason === undefined ? {} : { reason }),
        ...(edit === undefined ? {} : { input: edit(job.input, job) }),
      });
    });
  }

  async delete(filter: DeadFilter = {}, how: Omit<BulkOptions, "pace"> = {}): Promise<BulkReport> {
    const { maxJobs, reason } = checkBulkOptions("delete", how, DELETE_KEYS);
    return this.#each(filter, maxJobs, async (job) => {
      await this.jobs.delete(job, reason);
    });
  }

  async #each(filter: DeadFilter, maxJobs: number, change: (job: JobView, index: number) => Promise<void>): Promise<BulkReport> {
    const counter = new BulkCounter();
    let index = 0;
    const one = (job: JobView) => counter.change(job.id, () => change(job, index++));
    for await (const page of this.#pages(filter, maxJobs)) {
      for (let at = 0; at < page.length; at += MAX_CONCURRENT_CHANGES) await Promise.all(page.slice(at, at + MAX_CONCURRENT_CHANGES).map(one));
    }
    return counter.report();
  }

  /** Pages go from newest to oldest by id, so jobs that leave or come back meanwhile are not seen twice. */
  async *#pages(filter: DeadFilter, maxJobs: number): AsyncGenerator<readonly JobView[]> {
    const which = checkFilter(this.scope, checkDead(filter));
    let left = maxJobs;
    let after: JobView["id"] | undefined;
    do {
      const page = await this.store.jobs.list(
        which.scope,
        { ...which.filter, state: "dead" },
        { limit: Math.min(JOBS_PER_PAGE, left), bytes: MAX_PAGE_BYTES, ...(after === undefined ? {} : { after }) },
      );
      left -= page.jobs.length;
      after = page.next;
      yield page.jobs.map((record) => jobView(record, this.scope));
    } while (after !== undefined && left > 0);
  }
}

const REDRIVE_KEYS: ReadonlySet<string> = new Set(["limit", "pace", "reason", "edit"] satisfies (keyof RedriveManyOptions)[]);
const DELETE_KEYS: ReadonlySet<string> = new Set(["limit", "reason"] satisfies (keyof BulkOptions)[]);
const GROUP_KEYS = new Set(["tenant", "queue", "task", "failure"]);

function checkDead(filter: DeadFilter): DeadFilter {
  if ("state" in checkObject("filter", filter)) throw invalid("filter.state", "all of these are dead");
  return filter;
}

function groupView({ fingerprint, count, firstAt, lastAt, sample }: DeadGroup, scope: Scope): DeadGroupView {
  const { kind = "error", name = "error", message = "" } = sample.failure ?? {};
  return {
    fingerprint,
    task: sample.lane.task,
    kind,
    name,
    message: maskedMessage(message),
    count,
    firstSeen: new Date(firstAt),
    lastSeen: new Date(lastAt),
    sample: jobView(sample, scope),
  };
}
