import { checkTaskUnique, type TaskUniqueOptions } from "../../core/jobs/task-unique.js";
import type { UniqueRule } from "../../core/jobs/unique-key.js";
import type { LimitKeyValue } from "../../core/limits/limit-options.js";
import { checkName } from "../../core/values/name.js";
import { withLimits } from "../limits/limits.js";
import type { JobPlan, TaskLike } from "./job-plan.js";

/** The plan with what the input decides: the limits that the job is under, and its unique key. */
export function planForInput(plan: JobPlan, task: TaskLike, input: unknown, limitKeys: Readonly<Record<string, LimitKeyValue>> | undefined): JobPlan {
  const limited = withLimits(plan, task, input, limitKeys);
  // The call's own unique or debounce wins.
  if (task.options.unique === undefined || plan.extras?.unique !== undefined) return limited;
  const unique = uniqueRuleOf(task, input);
  if (unique === undefined) return limited;
  return { ...limited, options: { ...limited.options, uniqueKey: unique.key }, extras: { ...limited.extras, unique } };
}

const checkedRules = new WeakMap<TaskLike, Omit<UniqueRule, "key">>();

/** The unique rule that the task's function makes of an input; undefined where it gives no key. */
export function uniqueRuleOf(task: TaskLike, input: unknown): UniqueRule | undefined {
  const unique = task.options.unique as TaskUniqueOptions<unknown> | undefined;
  if (unique === undefined) return undefined;
  let rule = checkedRules.get(task);
  if (rule === undefined) {
    rule = checkTaskUnique(`${task.name}.unique`, unique);
    checkedRules.set(task, rule);
  }
  const key = unique.key(input);
  return key === undefined ? undefined : { key: checkName("key", key), ...rule };
}
