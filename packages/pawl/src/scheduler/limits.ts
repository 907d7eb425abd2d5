import { type CheckedLimit, checkLimits, type LimitKey, limitsOf } from "../core/limit-options.js";
import type { Plan, TaskLike } from "./plan.js";

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
export function withLimits(plan: Plan, task: TaskLike, input: unknown, own: Readonly<Record<string, LimitKey>> | undefined): Plan {
  if (task.options.limits === undefined && own === undefined) return plan;
  const limits = limitsOf(task.name, limitsOfTask(task), input, own);
  return limits === undefined ? plan : { ...plan, options: { ...plan.options, limits } };
}
