import { checkFunction, checkObject, invalid } from "../../scheduler/check.js";
import { checkBulkOptions } from "../../scheduler/jobs/bulk-change.js";
import { BulkCounter } from "../../scheduler/jobs/bulk-counter.js";
import type { JobView } from "../../scheduler/jobs/view.js";
import { checkPageOptions, type PagedList, type PageOptions, pagedList, revivedPage } from "../../scheduler/page.js";
import type {
  BulkOptions,
  BulkReport,
  Dead,
  DeadFilter,
  DeadGroupsFilter,
  DeadGroupView,
  Jobs,
  RedriveManyOptions,
} from "../../scheduler/scheduler.js";
import type { Scope } from "../../store/port/index.js";
import type { HttpTransport } from "../transport/http-transport.js";
import { revive } from "../transport/problem.js";
import { queryOf } from "./jobs.js";
import { deadGroup, jobView } from "./parse-views.js";

/** What the service does in one request. */
const MAX_PER_REQUEST = 1_000;

/** Dead jobs by filter, through the service: a thousand to a request, until there are none left or enough is done. */
export class RemoteDead implements Dead {
  constructor(
    private readonly transport: HttpTransport,
    private readonly scope: Scope,
    private readonly jobs: Jobs,
  ) {}

  list(filter: DeadFilter = {}, page?: PageOptions): PagedList<JobView> {
    return pagedList(page, async (one) => {
      const query = { ...this.#filter(filter), ...checkPageOptions(one) };
      return revivedPage(await this.transport.get("/v1/dead", query), jobView);
    });
  }

  async count(filter: DeadFilter = {}): Promise<number> {
    return ((await this.transport.get("/v1/dead/count", this.#filter(filter))) as { count: number }).count;
  }

  groups(filter: DeadGroupsFilter = {}, page?: PageOptions): PagedList<DeadGroupView> {
    return pagedList(page, async (one) => {
      const query = { ...this.#filter(filter), ...checkPageOptions(one) };
      return revivedPage(await this.transport.get("/v1/dead/groups", query), deadGroup);
    });
  }

  async redrive(filter: DeadFilter = {}, how: RedriveManyOptions = {}): Promise<BulkReport> {
    const { maxJobs, pace, reason } = checkBulkOptions("redrive", how, REDRIVE_KEYS);
    const { edit } = how;
    if (edit === undefined)
      return this.#bulk("redrive", filter, maxJobs, { ...(how.pace === undefined ? {} : { pace: how.pace }), ...reasonIn(reason) });
    // Its inputs are made here, so each job goes by itself.
    checkFunction("edit", edit);
    return this.#each(filter, maxJobs, async (job, index) => {
      const delay = pace === 0 ? {} : { delay: Math.round(index * pace) };
      await this.jobs.redrive(job, { input: edit(job.input, job), ...delay, ...reasonIn(reason) });
    });
  }

  async delete(filter: DeadFilter = {}, how: Omit<BulkOptions, "pace"> = {}): Promise<BulkReport> {
    const { maxJobs, reason } = checkBulkOptions("delete", how, DELETE_KEYS);
    return this.#bulk("delete", filter, maxJobs, reasonIn(reason));
  }

  async #bulk(verb: "redrive" | "delete", filter: DeadFilter, maxJobs: number, how: object): Promise<BulkReport> {
    const counter = new BulkCounter();
    const body = { ...how, filter: this.#filter(filter) };
    let left = maxJobs;
    while (left > 0) {
      const batchSize = Math.min(MAX_PER_REQUEST, left);
      const done = (await this.transport.post(`/v1/dead/${verb}`, { ...body, limit: batchSize })) as Omit<BulkReport, "failures"> & {
        failures: readonly FailedJob[];
      };
      counter.count += done.changed;
      counter.skipped += done.skipped;
      counter.failed += done.failed;
      for (const { job, error } of done.failures) counter.show({ job, error: failureOf(error) });
      left -= batchSize;
      // What could not be changed is still dead, and would come again and again.
      if (done.changed + done.skipped + done.failed < batchSize || done.changed === 0) break;
    }
    return counter.report();
  }

  async #each(filter: DeadFilter, maxJobs: number, change: (job: JobView, index: number) => Promise<void>): Promise<BulkReport> {
    const counter = new BulkCounter();
    let left = maxJobs;
    let index = 0;
    let cursor: string | undefined;
    do {
      const page = await this.list(filter, { limit: Math.min(500, left), ...(cursor === undefined ? {} : { cursor }) });
      left -= page.items.length;
      cursor = page.next;
      for (const job of page.items) await counter.change(job.id, () => change(job, index++));
    } while (cursor !== undefined && left > 0);
    return counter.report();
  }

  #filter(filter: DeadFilter): Readonly<Record<string, unknown>> {
    if ("state" in checkObject("filter", filter)) throw invalid("filter.state", "all of these are dead");
    return queryOf(this.scope, filter);
  }
}

interface FailedJob {
  readonly job: BulkReport["failures"][number]["job"];
  readonly error: unknown;
}

function failureOf(error: unknown): unknown {
  return typeof error === "object" && error !== null ? revive(error) : error;
}

function reasonIn(reason: string | undefined): { readonly reason?: string } {
  return reason === undefined ? {} : { reason };
}

const REDRIVE_KEYS: ReadonlySet<string> = new Set(["limit", "pace", "reason", "edit"] satisfies (keyof RedriveManyOptions)[]);
const DELETE_KEYS: ReadonlySet<string> = new Set(["limit", "reason"] satisfies (keyof BulkOptions)[]);
