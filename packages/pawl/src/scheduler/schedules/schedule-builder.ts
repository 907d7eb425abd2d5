import type { AnyTask } from "../../core/jobs/task.js";
import { type ScheduledJob, seedOf } from "../../core/schedules/schedule.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import { checkName } from "../../core/values/name.js";
import { checkArray, checkObject, invalid, show } from "../../core/values/option.js";
import type { Scope } from "../../store/port/index.js";
import type { SchedulePut } from "../../store/port/schedules/schedules.js";
import { encodeInput } from "../enqueue/encode-input.js";
import type { EnqueueDeps } from "../enqueue/enqueuer.js";
import { JobPlanner, type TaskLike } from "../enqueue/job-plan.js";
import { planForInput } from "../enqueue/plan-for-input.js";
import { type CodeSchedule, checkScheduleOptions, definitionOf } from "./schedule.js";

/** Makes definitions out of what people say. Shared by those given at run time and those in code. */
export class ScheduleBuilder {
  readonly #planner: JobPlanner;
  constructor(
    readonly deps: EnqueueDeps,
    scope: Scope,
  ) {
    this.#planner = new JobPlanner(deps.queues, scope === "everyone" ? undefined : scope.tenant);
  }

  async build(name: string, taskOrName: AnyTask | string, options: unknown): Promise<SchedulePut> {
    checkName("schedule", name);
    const task = await this.deps.registry.find(taskOrName);
    const { tenant, input, job, ...times } = checkScheduleOptions(options);
    const { plan: planned, limitKeys } = this.#planner.plan(task, { ...job, ...(tenant === undefined ? {} : { tenant }) });
    const plan = planForInput(planned, task, input, limitKeys);
    const ref = { tenant: plan.lane.tenant, name };
    const unique = plan.extras?.unique;
    const text = await this.encode(task, input);
    const scheduled: ScheduledJob = { lane: plan.lane, input: text, options: plan.options, ...(unique === undefined ? {} : { unique }) };
    return { ...ref, definition: definitionOf(ref, times, scheduled) };
  }

  async encode(task: TaskLike, input: unknown): Promise<string> {
    return encodeInput(task.name, task.schema, input, this.deps.caller);
  }
}

/** Stores the schedules of the code, all or none, and marks those it no longer has. */
export async function declareSchedules(deps: EnqueueDeps, app: unknown, schedules: unknown): Promise<void> {
  const name = checkName("schedule", app ?? DEFAULTS.schedule.app);
  const builder = new ScheduleBuilder(deps, "everyone");
  const entries: SchedulePut[] = [];
  const seen = new Set<string>();
  for (const codeSchedule of checkArray("schedules", schedules)) {
    const { name: own, task, options } = checkObject("schedules", codeSchedule) as CodeSchedule;
    const entry = await builder.build(own, task, options);
    if (seen.has(seedOf(entry))) throw invalid("schedules", `two are called ${show(own)}`);
    seen.add(seedOf(entry));
    entries.push(entry);
  }
  await deps.store.schedules.put(entries, name);
}
