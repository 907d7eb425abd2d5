import type { AnyTask } from "../../core/jobs/task.js";
import { checkName } from "../../core/values/name.js";
import { checkKeys, checkObject, invalid, show } from "../../scheduler/check.js";
import { encodeInput } from "../../scheduler/enqueue/encode-input.js";
import type { TaskRegistry } from "../../scheduler/enqueue/task-registry.js";
import { checkPageOptions, type PagedList, type PageOptions, pagedList, revivedPage } from "../../scheduler/page.js";
import type { Job } from "../../scheduler/scheduler.js";
import { checkScheduleOptions, type Instant, type ScheduleOptions } from "../../scheduler/schedules/schedule.js";
import type { ScheduleView, TickView } from "../../scheduler/schedules/schedule-view.js";
import {
  type BackfillRange,
  type BackfillReport,
  checkPreviewOptions,
  type PreviewedTick,
  type PreviewOptions,
  type ScheduleChanges,
  type ScheduleReference,
  type Schedules,
  type SchedulesFilter,
} from "../../scheduler/schedules/schedules.js";
import type { Scope } from "../../store/port/index.js";
import type { SchedulePutAnswer } from "../../store/port/schedules/schedules.js";
import type { HttpTransport } from "../transport/http-transport.js";
import { jobOptionsOf } from "../transport/job-fields.js";
import type { RemoteJobs } from "./jobs.js";
import { backfillReport, previewedTick, scheduleView, tickView } from "./parse-views.js";

/** Schedules through the service. */
export class RemoteSchedules implements Schedules {
  constructor(
    private readonly transport: HttpTransport,
    private readonly scope: Scope,
    private readonly registry: Pick<TaskRegistry, "find">,
    private readonly jobs: RemoteJobs,
  ) {}

  async put(name: string, taskOrName: AnyTask | string, options: ScheduleOptions): Promise<SchedulePutAnswer> {
    const task = await this.registry.find(taskOrName);
    const { tenant, input, job, missed, ...times } = checkScheduleOptions(options);
    const body = {
      ...times,
      ...(missed === undefined ? {} : { missed: typeof missed === "string" ? { policy: missed } : missed }),
      task: task.name,
      ...(job === undefined ? {} : { job: jobOptionsOf(job) }),
      ...(input === undefined ? {} : { input: JSON.parse(await encodeInput(task.name, task.schema, input)) as unknown }),
      ...this.#tenant(tenant),
    };
    return this.#changed({ method: "PUT", path: this.#path(name), body: JSON.stringify(body) });
  }

  async update(schedule: ScheduleReference, { missed, ...changes }: ScheduleChanges): Promise<SchedulePutAnswer> {
    const body = { ...changes, ...(missed === undefined ? {} : { missed: typeof missed === "string" ? { policy: missed } : missed }) };
    return this.#changed({ method: "PATCH", ...this.#schedulePath(schedule), body: JSON.stringify(body) });
  }

  async get(schedule: ScheduleReference): Promise<ScheduleView> {
    return scheduleView(await this.transport.json({ method: "GET", ...this.#schedulePath(schedule) }));
  }

  list(filter: SchedulesFilter = {}, page?: PageOptions): PagedList<ScheduleView> {
    return pagedList(page, async (one) => {
      checkKeys(checkObject("filter", filter), FILTER_KEYS, "filter.");
      const query = { ...filter, ...this.#tenant(filter.tenant), ...checkPageOptions(one) };
      return revivedPage(await this.transport.get("/v1/schedules", query), scheduleView);
    });
  }

  async pause(schedule: ScheduleReference): Promise<void> {
    await this.#act("pause", schedule);
  }
  async resume(schedule: ScheduleReference): Promise<void> {
    await this.#act("resume", schedule);
  }
  async delete(schedule: ScheduleReference): Promise<void> {
    await this.transport.json({ method: "DELETE", ...this.#schedulePath(schedule) });
  }
  async trigger(schedule: ScheduleReference, how: { readonly input?: unknown; readonly idempotencyKey?: string } = {}): Promise<Job> {
    return this.jobs.handle(await this.#act("trigger", schedule, how));
  }
  async backfill(schedule: ScheduleReference, range: BackfillRange): Promise<BackfillReport> {
    return backfillReport(await this.#act("backfill", schedule, range));
  }

  async preview(schedule: ScheduleReference, how: PreviewOptions = {}): Promise<readonly PreviewedTick[]> {
    checkPreviewOptions(how);
    const { count, from } = how;
    const { path, query } = this.#schedulePath(schedule);
    const answer = await this.transport.get(`${path}/preview`, { ...query, count, from: from === undefined ? undefined : isoOf(from) });
    return revivedPage(answer, previewedTick).items;
  }

  ticks(schedule: ScheduleReference, page?: PageOptions): PagedList<TickView> {
    return pagedList(page, async (one) => {
      const { path, query } = this.#schedulePath(schedule);
      return revivedPage(await this.transport.get(`${path}/ticks`, { ...query, ...checkPageOptions(one) }), tickView);
    });
  }

  async #changed(call: Parameters<HttpTransport["json"]>[0]): Promise<SchedulePutAnswer> {
    return ((await this.transport.json(call)) as { result: SchedulePutAnswer }).result;
  }

  #act(verb: string, schedule: ScheduleReference, body: object = {}): Promise<unknown> {
    const { path, query } = this.#schedulePath(schedule);
    return this.transport.post(`${path}/${verb}`, body, query);
  }

  #schedulePath(schedule: ScheduleReference) {
    const { name, tenant } =
      typeof schedule === "string" ? { name: schedule } : (checkObject("schedule", schedule) as { name: string; tenant?: string });
    return { path: this.#path(name), query: this.#tenant(tenant) };
  }

  #path(name: string): string {
    return `/v1/schedules/${encodeURIComponent(checkName("schedule", name))}`;
  }

  #tenant(tenant: string | undefined): { readonly tenant?: string } {
    if (this.scope === "everyone") return tenant === undefined ? {} : { tenant: checkName("tenant", tenant) };
    if (tenant !== undefined && tenant !== this.scope.tenant) throw invalid("tenant", `this scheduler acts for ${show(this.scope.tenant)} only`);
    return { tenant: this.scope.tenant };
  }
}

const FILTER_KEYS = new Set(["tenant", "undeclared", "paused"]);

function isoOf(instant: Instant): string {
  return typeof instant === "string" ? instant : new Date(instant).toISOString();
}
