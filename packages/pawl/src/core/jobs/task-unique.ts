import type { Duration } from "../values/duration.js";
import { checkFunction, checkKeys, checkObject, checkOneOf, checkPeriod } from "../values/option.js";
import type { UniqueRule } from "./unique-key.js";

/** Makes each job of a task the only one of a key that its code computes from the input. */
export interface TaskUniqueOptions<In> {
  /** undefined: this job has no key. It runs wherever a job is enqueued by code that has the task. */
  readonly key: (input: In) => string | undefined;
  /** as in `unique` of a job */
  readonly for?: "unstarted" | "unfinished" | Duration;
  /** as in `unique` of a job */
  readonly onConflict?: "reject" | "existing" | "replace";
}

const TASK_UNIQUE_KEYS: ReadonlySet<string> = new Set(["key", "for", "onConflict"] satisfies (keyof TaskUniqueOptions<never>)[]);

/** All of the rule but the key. */
export function checkTaskUnique(option: string, value: unknown): Omit<UniqueRule, "key"> {
  const unique = checkObject(option, value) as Partial<TaskUniqueOptions<never>>;
  checkKeys(unique, TASK_UNIQUE_KEYS, `${option}.`);
  checkFunction(`${option}.key`, unique.key);
  return checkUniqueRule(option, unique);
}

/** How long a key is held, and what a second enqueue gets: of jobs and tasks alike. */
export function checkUniqueRule(
  option: string,
  { for: hold = "unfinished", onConflict = "existing" }: { readonly for?: unknown; readonly onConflict?: unknown },
): Omit<UniqueRule, "key"> {
  return {
    hold: hold === "unstarted" || hold === "unfinished" ? hold : checkPeriod(`${option}.for`, hold),
    onConflict: checkOneOf(`${option}.onConflict`, onConflict, ["reject", "existing", "replace"]),
  };
}
