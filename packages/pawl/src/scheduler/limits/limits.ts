import type { AnyTask } from "../../core/jobs/task.js";
import { type CheckedLimit, checkLimits, type LimitKeyValue, limitsOf } from "../../core/limits/limit-options.js";
import { type LostPath, lostPaths } from "../../core/limits/limit-path.js";
import { jsonSchemaOf } from "../../core/values/json-schema.js";
import type { JobPlan, TaskLike } from "../enqueue/job-plan.js";

const checked = new WeakMap<TaskLike, readonly CheckedLimit[]>();

function limitsOfTask(task: TaskLike): readonly CheckedLimit[] {
  let limits = checked.get(task);
  if (limits === undefined) {
    limits = checkLimits(task.name, task.options.limits ?? []);
    checked.set(task, limits);
  }
  return limits;
}

/** The plan with the limits that the input puts the job under. */
export function withLimits(plan: JobPlan, task: TaskLike, input: unknown, own: Readonly<Record<string, LimitKeyValue>> | undefined): JobPlan {
  if (task.options.limits === undefined && own === undefined) return plan;
  const limits = limitsOf(task.name, limitsOfTask(task), input, own);
  return limits === undefined ? plan : { ...plan, options: { ...plan.options, limits } };
}

/** Paths of a task's limits that its schema does not know, though it would take them: misspelt, most likely. */
export function unknownLimitPaths({ options, schema }: AnyTask): readonly Pick<LostPath, "option" | "reason">[] {
  return lostPaths(options.limits, jsonSchemaOf(schema)).filter(({ certain }) => !certain);
}
