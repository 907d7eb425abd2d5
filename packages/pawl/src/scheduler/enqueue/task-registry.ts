import type { AnyTask } from "../../core/jobs/task.js";
import type { TaskRecord } from "../../core/jobs/task-record.js";
import type { Transaction } from "../../core/jobs/transaction.js";
import { checkLimitPaths } from "../../core/limits/limit-path.js";
import { pawlError } from "../../core/values/error.js";
import { jsonSchemaOf } from "../../core/values/json-schema.js";
import { checkName } from "../../core/values/name.js";
import { checkBoolean } from "../../core/values/option.js";
import { checkArray, checkDefaults, invalid, shortened, show, storedDefaults } from "../check.js";
import type { TaskLike } from "./job-plan.js";
import type { PublishedTasks } from "./published-tasks.js";

/** The tasks of this process, by name; and those of others, where it registers none. */
export class TaskRegistry {
  readonly #tasks = new Map<string, AnyTask>();
  /** A process that registers nothing only produces: it may name any task. So may one that is asked to. */
  readonly #acceptsAnyName: boolean;

  constructor(
    tasks: readonly AnyTask[] | undefined,
    readonly published: Pick<PublishedTasks, "find" | "forget" | "compile">,
    allowUnknownTasks: boolean = tasks === undefined,
  ) {
    this.#acceptsAnyName = checkBoolean("allowUnknownTasks", allowUnknownTasks);
    for (const task of checkArray("tasks", tasks ?? []) as readonly AnyTask[]) {
      if (typeof task !== "object" || task === null || typeof task.handler !== "function")
        throw invalid("tasks", `${show(task)} was not made by task()`);
      if (this.#tasks.has(task.name)) throw pawlError("task_duplicate", { task: task.name });
      checkDefaults(`${task.name}.`, task.options);
      this.#tasks.set(task.name, task);
    }
  }

  get all(): ReadonlyMap<string, AnyTask> {
    return this.#tasks;
  }

  get(name: string): AnyTask | undefined {
    return this.#tasks.get(name);
  }

  /** The tasks of this process as others may know them. */
  records(): readonly TaskRecord[] {
    return [...this.#tasks.values()].map(({ name, options, schema }) => {
      const inputSchema = jsonSchemaOf(schema);
      const defaults = storedDefaults(options, name);
      checkLimitPaths(name, defaults.limits, inputSchema);
      return { name, defaults: { ...defaults, ...(inputSchema === undefined ? {} : { inputSchema }) } };
    });
  }

  /** The task meant by what a caller gave, with its schema if its code is known. */
  find(taskOrName: AnyTask | string, tx?: Transaction): TaskLike | Promise<TaskLike> {
    const name = typeof taskOrName === "string" ? taskOrName : (taskOrName as AnyTask | undefined)?.name;
    if (name === undefined) throw invalid("task", `${show(taskOrName)} is neither a task nor the name of one`);
    const registered = this.#tasks.get(name);
    if (registered === undefined && !this.#acceptsAnyName) throw pawlError("task_unknown", { task: shortened(name) });
    if (typeof taskOrName !== "string") return taskOrName;
    return registered ?? this.published.find(checkName("task", name), tx);
  }
}
