import type { JsonSchema, SchemaCompiler } from "../core/json-schema.js";
import type { TaskRecord } from "../core/task.js";
import type { Clock } from "../runtime/clock.js";
import type { ForeignTransaction, Store } from "../store/port.js";
import type { TaskLike } from "./plan.js";

/** ms for which a task is believed to be as it was read: so long a deploy's new defaults may go unseen by producers */
const BELIEVED = 5_000;
const MOST_KNOWN = 1_000;

interface Entry {
  readonly task: TaskLike;
  readonly record: string;
  until: number;
}

/** Tasks by name, for a process that has not got their code: what others published, read again every few seconds. */
export class Directory {
  readonly #known = new Map<string, Entry>();
  readonly #reading = new Map<string, Promise<TaskLike>>();

  constructor(
    readonly store: Store,
    readonly clock: Clock,
    /** makes inputs be checked here, by the schemas that were published */
    readonly compile?: SchemaCompiler,
  ) {}

  /** It was changed by this very process: whoever asks next reads it again. */
  forget(name: string): void {
    this.#known.delete(name);
  }

  /** Answers at once what was read just now. A task that nobody has published has no defaults of its own. */
  find(name: string, tx?: ForeignTransaction): TaskLike | Promise<TaskLike> {
    const entry = this.#known.get(name);
    if (entry !== undefined && this.clock.monotonic() < entry.until) return entry.task;
    // Inside a transaction of the caller's there may be no other connection, and nobody else should wait for it.
    return tx === undefined ? this.#readOnce(name) : this.#read(name, tx);
  }

  #readOnce(name: string): Promise<TaskLike> {
    let reading = this.#reading.get(name);
    if (reading === undefined) {
      reading = this.#read(name).finally(() => this.#reading.delete(name));
      this.#reading.set(name, reading);
    }
    return reading;
  }

  async #read(name: string, tx?: ForeignTransaction): Promise<TaskLike> {
    const [found] = await this.store.tasks.get([name], tx);
    return this.#note(found ?? { name, defaults: {} });
  }

  /** The same object while nothing has changed, since plans are kept by it. */
  #note({ name, defaults }: TaskRecord): TaskLike {
    const until = this.clock.monotonic() + BELIEVED;
    const record = JSON.stringify(defaults);
    const known = this.#known.get(name);
    if (known?.record === record) {
      known.until = until;
      return known.task;
    }
    // Callers may invent names without end; what they cost must not grow with them.
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    const { inputSchema, ...options } = defaults;
    const task: TaskLike = { name, options, schema: this.#schemaOf(name, inputSchema) };
    this.#known.set(name, { task, record, until });
    return task;
  }

  #schemaOf(task: string, schema: JsonSchema | undefined): TaskLike["schema"] {
    try {
      return schema === undefined ? undefined : this.compile?.(schema, task);
    } catch {
      // It was made by code whose schema says more than can be checked here: its worker checks it.
      return undefined;
    }
  }
}
