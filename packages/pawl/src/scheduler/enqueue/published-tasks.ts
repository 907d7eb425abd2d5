import type { TaskRecord } from "../../core/jobs/task-record.js";
import type { Transaction } from "../../core/jobs/transaction.js";
import type { JsonSchema, SchemaCompiler } from "../../core/values/json-schema.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { Store } from "../../store/port/index.js";
import type { TaskLike } from "./job-plan.js";
import { joinTransaction } from "./join-transaction.js";

/** ms for which a task is believed to be as it was read: so long a deploy's new defaults may go unseen by producers */
const TASK_CACHE_MS = 5_000;
const MAX_CACHED_TASKS = 1_000;

interface CachedTask {
  readonly task: TaskLike;
  readonly record: string;
  until: number;
}

/** Tasks by name, for a process that has not got their code: what others published, read again every few seconds. */
export class PublishedTasks {
  readonly #cache = new Map<string, CachedTask>();
  readonly #reading = new Map<string, Promise<TaskLike>>();

  constructor(
    readonly store: Store,
    readonly clock: Clock,
    /** makes inputs be checked here, by the schemas that were published */
    readonly compile?: SchemaCompiler,
  ) {}

  /** It was changed by this very process: whoever asks next reads it again. */
  forget(name: string): void {
    this.#cache.delete(name);
  }

  /** Answers at once what was read just now. A task that nobody has published has no defaults of its own. */
  find(name: string, tx?: Transaction): TaskLike | Promise<TaskLike> {
    const entry = this.#cache.get(name);
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

  async #read(name: string, tx?: Transaction): Promise<TaskLike> {
    const [found] = await this.store.tasks.get([name], tx === undefined ? undefined : joinTransaction(this.store, tx));
    return this.#note(found ?? { name, defaults: {} });
  }

  /** The same object while nothing has changed, since plans are kept by it. */
  #note({ name, defaults }: TaskRecord): TaskLike {
    const until = this.clock.monotonic() + TASK_CACHE_MS;
    const record = JSON.stringify(defaults);
    const cachedTask = this.#cache.get(name);
    if (cachedTask?.record === record) {
      cachedTask.until = until;
      return cachedTask.task;
    }
    // Callers may invent names without end; what they cost must not grow with them.
    if (this.#cache.size >= MAX_CACHED_TASKS) this.#cache.clear();
    const { inputSchema, ...options } = defaults;
    const task: TaskLike = { name, options, schema: this.#schemaOf(name, inputSchema) };
    this.#cache.set(name, { task, record, until });
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
