import { checkName } from "../core/name.js";
import type { ScheduleRef } from "../core/schedule.js";
import { checkKeys, checkObject, checkPageKeys, invalid, show } from "../scheduler/check.js";
import { encodeInput } from "../scheduler/input.js";
import type { Registry } from "../scheduler/registry.js";
import { checkScheduleOptions, type Instant, type ScheduleOptions } from "../scheduler/schedule.js";
import type { ScheduleView, TickView } from "../scheduler/schedule-view.js";
import type { Job } from "../scheduler/scheduler.js";
import type {
  BackfillRange,
  BackfillReport,
  PreviewedTick,
  ScheduleChanges,
  ScheduleListing,
  ScheduleReference,
  Schedules,
  SchedulesFilter,
} from "../scheduler/schedules.js";
import type { Scope } from "../store/port.js";
import type { SchedulePutAnswer } from "../store/port-schedules.js";
import type { AnyTask } from "../worker/task.js";
import type { RemoteJobs } from "./jobs.js";
import { jobOptionsOf } from "./options.js";
import { backfillReport, previewedTick, scheduleView, tickView } from "./views.js";
import type { Wire } from "./wire.js";

/** Schedules through the service. */
export class RemoteSchedules implements Schedules {
  constructor(
    private readonly wire: Wire,
    private readonly scope: Scope,
    private readonly registry: Pick<Registry, "find">,
    private readonly jobs: RemoteJobs,
  ) {}

  async put(name: string, given: AnyTask | string, options: ScheduleOptions): Promise<SchedulePutAnswer> {
    const task = await this.registry.find(given);
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

  async update(given: ScheduleReference, { missed, ...changes }: ScheduleChanges): Promise<SchedulePutAnswer> {
    const body = { ...changes, ...(missed === undefined ? {} : { missed: typeof missed === "string" ? { policy: missed } : missed }) };
    return this.#changed({ method: "PATCH", ...this.#one(given), body: JSON.stringify(body) });
  }

  async get(given: ScheduleReference): Promise<ScheduleView> {
    return scheduleView(await this.wire.json({ method: "GET", ...this.#one(given) }));
  }

  async list(filter: SchedulesFilter = {}, page: { readonly limit?: number; readonly after?: ScheduleRef } = {}): Promise<ScheduleListing> {
    checkKeys(checkObject("filter", filter), FILTER_KEYS, "filter.");
    checkPageKeys(page);
    const { limit, after } = page;
    const query = { ...filter, ...this.#tenant(filter.tenant), limit, after: after?.name, afterTenant: after?.tenant };
    const { schedules, next } = (await this.wire.get("/v1/schedules", query)) as ScheduleListing;
    return { schedules: schedules.map(scheduleView), ...(next === undefined ? {} : { next }) };
  }

  async pause(given: ScheduleReference): Promise<void> {
    await this.#act("pause", given);
  }
  async resume(given: ScheduleReference): Promise<void> {
    await this.#act("resume", given);
  }
  async remove(given: ScheduleReference): Promise<void> {
    await this.wire.json({ method: "DELETE", ...this.#one(given) });
  }
  async trigger(given: ScheduleReference, how: { readonly input?: unknown; readonly request?: string } = {}): Promise<Job> {
    return this.jobs.handle(await this.#act("trigger", given, how));
  }
  async backfill(given: ScheduleReference, range: BackfillRange): Promise<BackfillReport> {
    return backfillReport(await this.#act("backfill", given, range));
  }

  async preview(given: ScheduleReference, count?: number, from?: Instant): Promise<readonly PreviewedTick[]> {
    const { path, query } = this.#one(given);
    const told = await this.wire.get(`${path}/preview`, { ...query, count, from: from === undefined ? undefined : isoOf(from) });
    return (told as { ticks: readonly unknown[] }).ticks.map(previewedTick);
  }

  async ticks(given: ScheduleReference, page: { readonly limit?: number; readonly before?: Instant } = {}): Promise<readonly TickView[]> {
    const { path, query } = this.#one(given);
    const { limit, before } = page;
    const told = await this.wire.get(`${path}/ticks`, { ...query, limit, before: before === undefined ? undefined : isoOf(before) });
    return (told as { ticks: readonly unknown[] }).ticks.map(tickView);
  }

  async #changed(call: Parameters<Wire["json"]>[0]): Promise<SchedulePutAnswer> {
    return ((await this.wire.json(call)) as { result: SchedulePutAnswer }).result;
  }

  #act(verb: string, given: ScheduleReference, body: object = {}): Promise<unknown> {
    const { path, query } = this.#one(given);
    return this.wire.post(`${path}/${verb}`, body, query);
  }

  #one(given: ScheduleReference) {
    const { name, tenant } = typeof given === "string" ? { name: given } : (checkObject("schedule", given) as { name: string; tenant?: string });
    return { path: this.#path(name), query: this.#tenant(tenant) };
  }

  #path(name: string): string {
    return `/v1/schedules/${encodeURIComponent(checkName("schedule", name))}`;
  }

  #tenant(asked: string | undefined): { readonly tenant?: string } {
    if (this.scope === "everyone") return asked === undefined ? {} : { tenant: checkName("tenant", asked) };
    if (asked !== undefined && asked !== this.scope.tenant) throw invalid("tenant", `this scheduler acts for ${show(this.scope.tenant)} only`);
    return { tenant: this.scope.tenant };
  }
}

const FILTER_KEYS = new Set(["tenant", "missing", "paused"]);

function isoOf(instant: Instant): string {
  return typeof instant === "string" ? instant : new Date(instant).toISOString();
}
