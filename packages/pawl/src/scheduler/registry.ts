import { pawlError } from "../core/error.js";
import { jsonSchemaOf } from "../core/json-schema.js";
import { checkLimitPaths } from "../core/limit-path.js";
import { checkName } from "../core/name.js";
import { checkBoolean } from "../core/option.js";
import type { TaskRecord } from "../core/task.js";
import type { ForeignTransaction } from "../store/port.js";
import type { AnyTask } from "../worker/task.js";
import { checkArray, checkDefaults, invalid, show, storedDefaults, told } from "./check.js";
import type { Directory } from "./directory.js";
import type { TaskLike } from "./plan.js";

/** The tasks of this process, by name; and those of others, where it registers none. */
export class Registry {
  readonly #tasks = new Map<string, AnyTask>();
  /** A process that registers nothing only produces: it may name any task. So may one that is asked to. */
  readonly #open: boolean;

  constructor(
    tasks: readonly AnyTask[] | undefined,
    readonly directory: Pick<Directory, "find" | "forget" | "compile">,
    anyTask: boolean = tasks === undefined,
  ) {
    this.#open = checkBoolean("anyTask", anyTask);
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
  find(given: AnyTask | string, tx?: ForeignTransaction): TaskLike | Promise<TaskLike> {
    const name = typeof given === "string" ? given : (given as AnyTask | undefined)?.name;
    if (name === undefined) throw invalid("task", `${show(given)} is neither a task nor the name of one`);
    const known = this.#tasks.get(name);
    if (known === undefined && !this.#open) throw pawlError("task_unknown", { task: told(name) });
    if (typeof given !== "string") return given;
    return known ?? this.directory.find(checkName("task", name), tx);
  }
}
