import { DEFAULT_NAMES, type TaskOptions } from "../../core/jobs/task.js";
import type { StoredDefaults } from "../../core/jobs/task-record.js";
import { breakerRule } from "../../core/limits/breaker-check.js";
import { checkLimitPaths } from "../../core/limits/limit-path.js";
import { BOUNDS } from "../../core/values/bounds.js";
import { isPawlError } from "../../core/values/error.js";
import type { JsonSchema, SchemaCompiler } from "../../core/values/json-schema.js";
import { checkName } from "../../core/values/name.js";
import { checkBoolean } from "../../core/values/option.js";
import type { Store } from "../../store/port/index.js";
import { checkDefaults, checkKeys, checkObject, invalid, storedDefaults } from "../check.js";
import type { TaskRegistry } from "../enqueue/task-registry.js";
import { StoredPolicies } from "../limits/queues-tasks-tenants.js";
import type { PolicyOperator, TaskView } from "../scheduler.js";

/** A task that workers elsewhere have, as it is made known by name: its defaults, and what its input must be. */
export interface TaskDefinition extends Omit<TaskOptions, "input" | "unique"> {
  /** of its input, 2020-12; enforced wherever its jobs are enqueued through a service */
  readonly inputSchema?: JsonSchema;
}

/** Tasks by name, known by their code or by what was said of them. */
export interface Tasks extends PolicyOperator<"task", TaskView> {
  /** one of them, with its defaults and the schema of its input */
  get(name: string): Promise<TaskView>;
  /** Makes a task known to every process, as code would that is started: the last one who says so is right. */
  put(name: string, definition: TaskDefinition): Promise<void>;
}

const KEYS: ReadonlySet<string> = new Set(
  Object.keys({
    ...DEFAULT_NAMES,
    atMostOnce: true,
    limits: true,
    needs: true,
    breaker: true,
    inputSchema: true,
  } satisfies Record<keyof TaskDefinition, true>),
);
/** characters of a schema as JSON */

export class StoredTasks extends StoredPolicies<"task", TaskView> implements Tasks {
  constructor(
    store: Store,
    readonly registry: TaskRegistry,
    readonly compile?: SchemaCompiler,
  ) {
    super(store, "task", [...registry.all.keys()], ({ name: task, paused, policy, counts }) => ({
      task,
      paused,
      registered: registry.get(task) !== undefined,
      policy,
      counts,
    }));
  }

  override async get(name: string): Promise<TaskView> {
    const [view, [record]] = await Promise.all([super.get(name), this.store.tasks.get([name])]);
    if (record === undefined) return view;
    const { inputSchema, ...defaults } = record.defaults;
    return { ...view, defaults, ...(inputSchema === undefined ? {} : { inputSchema }) };
  }

  async put(name: string, definition: TaskDefinition): Promise<void> {
    checkName("task", name);
    checkKeys(checkObject("definition", definition), KEYS);
    const { inputSchema, ...options } = definition;
    checkDefaults("", options);
    breakerRule("breaker", options.breaker);
    if (options.atMostOnce !== undefined) checkBoolean("atMostOnce", options.atMostOnce);
    const defaults: StoredDefaults = {
      ...storedDefaults(options, name),
      ...(inputSchema === undefined ? {} : { inputSchema: this.#checkSchema(name, inputSchema) }),
    };
    checkLimitPaths(name, defaults.limits, defaults.inputSchema);
    await this.store.tasks.publish([{ name, defaults }]);
    this.registry.published.forget(name);
  }

  #checkSchema(task: string, schema: unknown): JsonSchema {
    const jsonSchema = checkObject("inputSchema", schema) as JsonSchema;
    if (JSON.stringify(jsonSchema).length > BOUNDS.inputSchema) throw invalid("inputSchema", `it is larger than ${BOUNDS.inputSchema} characters`);
    try {
      this.compile?.(jsonSchema, task);
    } catch (error) {
      if (isPawlError(error)) throw error;
      throw invalid("inputSchema", error instanceof Error ? (error.message.split("\n")[0] as string).slice(0, 200) : "it is no JSON Schema");
    }
    return jsonSchema;
  }
}
