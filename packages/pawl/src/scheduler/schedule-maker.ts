import { DEFAULTS } from "../core/defaults.js";
import { checkName } from "../core/name.js";
import { checkArray, checkObject, invalid, show } from "../core/option.js";
import { type ScheduledJob, seedOf } from "../core/schedule.js";
import type { Scope } from "../store/port.js";
import type { SchedulePut } from "../store/port-schedules.js";
import type { AnyTask } from "../worker/task.js";
import type { Intake } from "./enqueuer.js";
import { encodeInput } from "./input.js";
import { withLimits } from "./limits.js";
import { Planner, type TaskLike } from "./plan.js";
import { type CodeSchedule, checkScheduleOptions, definitionOf } from "./schedule.js";

/** Makes definitions out of what people say. Shared by those given at run time and those in code. */
export class ScheduleMaker {
  readonly #planner: Planner;
  constructor(
    readonly intake: Intake,
    scope: Scope,
  ) {
    this.#planner = new Planner(intake.queues, scope === "everyone" ? undefined : scope.tenant);
  }

  async make(name: string, given: AnyTask | string, options: unknown): Promise<SchedulePut> {
    checkName("schedule", name);
    const task = await this.intake.registry.find(given);
    const { tenant, input, job, ...times } = checkScheduleOptions(options);
    const { plan: planned, limitKeys } = this.#planner.plan(task, { ...job, ...(tenant === undefined ? {} : { tenant }) });
    const plan = withLimits(planned, task, input, limitKeys);
    const ref = { tenant: plan.lane.tenant, name };
    const unique = plan.more?.unique;
    const text = await this.encode(task, input);
    const scheduled: ScheduledJob = { lane: plan.lane, input: text, options: plan.options, ...(unique === undefined ? {} : { unique }) };
    return { ...ref, definition: definitionOf(ref, times, scheduled) };
  }

  async encode(task: TaskLike, input: unknown): Promise<string> {
    return encodeInput(task.name, task.schema, input, this.intake.caller);
  }
}

/** Stores the schedules of the code, all or none, and marks those it no longer has. */
export async function declareSchedules(intake: Intake, app: unknown, schedules: unknown): Promise<void> {
  const name = checkName("schedule", app ?? DEFAULTS.schedule.app);
  const maker = new ScheduleMaker(intake, "everyone");
  const entries: SchedulePut[] = [];
  const seen = new Set<string>();
  for (const given of checkArray("schedules", schedules)) {
    const { name: own, task, options } = checkObject("schedules", given) as CodeSchedule;
    const entry = await maker.make(own, task, options);
    if (seen.has(seedOf(entry))) throw invalid("schedules", `two are called ${show(own)}`);
    seen.add(seedOf(entry));
    entries.push(entry);
  }
  await intake.store.schedules.put(entries, name);
}
