import { pawlError } from "../core/error.js";
import { checkName } from "../core/name.js";
import type { AnyTask } from "../worker/task.js";
import { checkDefaults, checkKeys, DEFAULT_KEYS, invalid, show } from "./check.js";
import type { TaskLike } from "./plan.js";

const TASK_KEYS = new Set([...DEFAULT_KEYS, "queue", "input", "atMostOnce"]);

/** The tasks of this process, by name. */
export class Registry {
  readonly #tasks = new Map<string, AnyTask>();
  /** A process that registers nothing only produces: it may name any task. */
  readonly #open: boolean;
  readonly #named = new Map<string, TaskLike>();

  constructor(tasks: readonly AnyTask[] | undefined) {
    this.#open = tasks === undefined;
    for (const task of tasks ?? []) {
      if (typeof task !== "object" || task === null || typeof task.handler !== "function")
        throw invalid("tasks", `${show(task)} was not made by task()`);
      if (this.#tasks.has(task.name)) throw pawlError("task_duplicate", { task: task.name });
      checkKeys(task.options, TASK_KEYS, `${task.name}.`);
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

  /** The task meant by what a caller gave, with its schema if its code is known. */
  find(given: AnyTask | string): TaskLike {
    const name = typeof given === "string" ? given : (given as AnyTask | undefined)?.name;
    if (name === undefined) throw invalid("task", `${show(given)} is neither a task nor the name of one`);
    const known = this.#tasks.get(name);
    if (known === undefined && !this.#open) throw pawlError("task_unknown", { task: show(name) });
    if (typeof given !== "string") return given;
    return known ?? this.#byName(name);
  }

  #byName(name: string): TaskLike {
    let named = this.#named.get(name);
    if (named === undefined) {
      named = { name: checkName("task", name), options: {} };
      if (this.#named.size >= 1_000) this.#named.clear();
      this.#named.set(name, named);
    }
    return named;
  }
}
