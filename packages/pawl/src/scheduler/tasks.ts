import { BOUNDS } from "../core/bounds.js";
import { breakerRule } from "../core/breaker-check.js";
import { isPawlError } from "../core/error.js";
import type { JsonSchema, SchemaCompiler } from "../core/json-schema.js";
import { checkLimitPaths } from "../core/limit-path.js";
import { checkName } from "../core/name.js";
import { checkBoolean } from "../core/option.js";
import type { StoredDefaults } from "../core/task.js";
import type { Store } from "../store/port.js";
import { DEFAULT_NAMES, type TaskOptions } from "../worker/task.js";
import { checkDefaults, checkKeys, checkObject, invalid, storedDefaults } from "./check.js";
import { NamedLanes } from "./named.js";
import type { Registry } from "./registry.js";
import type { Named, TaskView } from "./scheduler.js";

/** A task that workers elsewhere have, as it is made known by name: its defaults, and what its input must be. */
export interface TaskDefinition extends Omit<TaskOptions, "input"> {
  /** of its input, 2020-12; enforced wherever its jobs are enqueued through a service */
  readonly inputSchema?: JsonSchema;
}

/** Tasks by name, known by their code or by what was said of them. */
export interface Tasks extends Named<"task", TaskView> {
  /** one of them, with its defaults and the schema of its input */
  get(name: string): Promise<TaskView>;
  /** Makes a task known to every process, as code would that is started: the last one who says so is right. */
  define(name: string, definition: TaskDefinition): Promise<void>;
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

export class KnownTasks extends NamedLanes<"task", TaskView> implements Tasks {
  constructor(
    store: Store,
    readonly registry: Registry,
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
    const [view, [known]] = await Promise.all([super.get(name), this.store.tasks.get([name])]);
    if (known === undefined) return view;
    const { inputSchema, ...defaults } = known.defaults;
    return { ...view, defaults, ...(inputSchema === undefined ? {} : { inputSchema }) };
  }

  async define(name: string, definition: TaskDefinition): Promise<void> {
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
    this.registry.directory.forget(name);
  }

  #checkSchema(task: string, schema: unknown): JsonSchema {
    const given = checkObject("inputSchema", schema) as JsonSchema;
    if (JSON.stringify(given).length > BOUNDS.inputSchema) throw invalid("inputSchema", `it is larger than ${BOUNDS.inputSchema} characters`);
    try {
      this.compile?.(given, task);
    } catch (error) {
      if (isPawlError(error)) throw error;
      throw invalid("inputSchema", error instanceof Error ? (error.message.split("\n")[0] as string).slice(0, 200) : "it is no JSON Schema");
    }
    return given;
  }
}
