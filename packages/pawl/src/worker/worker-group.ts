import { checkKeys, checkObject } from "../core/values/option.js";
import { keepAlive } from "../runtime/process/keep-alive.js";
import { exitAfter, exitOn, exitWith, LOST_HANDLER_EXIT_CODES, onStopSignal } from "../runtime/process/signals.js";
import { closedError } from "../store/wrap/closable.js";
import { WORKER_KEYS, type WorkerOptions } from "./options.js";
import type { Worker } from "./worker.js";

/** ms that closing may take after the handlers' time, before the process ends without it */
const MAX_CLOSE_MS = 60_000;

export interface LocalWorkers {
  /** The workers of this process that have not stopped. */
  local(): readonly Worker[];
}

/** The workers of an open store in this process, and how it comes to its end: the same wherever their jobs come from. */
export class WorkerGroup {
  readonly #workers = new Set<Worker>();
  /** stopped, with handlers that go on */
  readonly #stoppedWithHandlers = new Set<Worker>();
  readonly #atEnd: (() => void)[] = [];
  readonly #atStuck = new Set<() => void>();
  readonly #end: () => Promise<void>;
  #closing: Promise<void> | undefined;
  #closed = false;
  #stuck = false;

  /** `end` closes the rest, once no worker is left: handlers may still enqueue while they finish. */
  constructor(end: () => Promise<void>) {
    this.#end = end;
  }

  get workers(): readonly Worker[] {
    return [...this.#workers];
  }

  /** Throws once it is being closed: nothing more is begun here. */
  checkOpen(): void {
    if (this.#closing !== undefined) throw closedError();
  }

  /** Throws once it is closed. What runs until then may go on asking. */
  checkNotClosed(): void {
    if (this.#closed) throw closedError();
  }

  async work(options: WorkerOptions, make: (options: WorkerOptions) => Worker): Promise<Worker> {
    checkKeys(checkObject("options", options), WORKER_KEYS);
    this.checkOpen();
    const worker = make(options);
    this.#workers.add(worker);
    const release = keepAlive();
    void worker.stuck.then(() => {
      this.#stuck = true;
      for (const call of this.#atStuck) call();
    });
    void worker.stopped.finally(() => {
      release();
      this.#workers.delete(worker);
      if (worker.status().overrun > 0) this.#stoppedWithHandlers.add(worker);
    });
    await worker.start();
    return worker;
  }

  /**
   * Closes at the first signal, and ends the process at the second one. It ends the process, too, where that would not end by
   * itself: where handlers go on after all is closed, and where a worker is stuck, which only another process can mend.
   */
  async closeOnSignal(): Promise<void> {
    this.checkNotClosed();
    await new Promise<void>((resolve) => {
      const stop = onStopSignal((signal, count) => {
        if (count === 1) void this.#endProcess();
        else {
          for (const worker of this.#workers) worker.kill();
          exitOn(signal);
        }
      });
      const stuck = () => void this.#endProcess();
      this.#atStuck.add(stuck);
      if (this.#stuck) stuck();
      // However it comes to its end, the signals of the process are its own again.
      this.#atEnd.push(stop, () => this.#atStuck.delete(stuck), resolve);
    });
  }

  /** Handlers of stopped workers that go on. They keep the process from ending by itself. */
  async unended(): Promise<number> {
    const left = await Promise.all([...this.#stoppedWithHandlers].map((worker) => worker.unended()));
    return left.reduce((sum, count) => sum + count, 0);
  }

  close(): Promise<void> {
    this.#closing ??= this.#stop().finally(() => {
      this.#closed = true;
      for (const call of this.#atEnd) call();
    });
    return this.#closing;
  }

  async #endProcess(): Promise<void> {
    const code = this.#stuck ? LOST_HANDLER_EXIT_CODES.stuck : LOST_HANDLER_EXIT_CODES.unended;
    const drain = Math.max(0, ...this.workers.map(({ drains }) => drains));
    const cancelExit = exitAfter(drain + MAX_CLOSE_MS, code);
    await this.close();
    if ((await this.unended()) > 0 || code === LOST_HANDLER_EXIT_CODES.stuck) exitWith(code);
    cancelExit();
  }

  async #stop(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.stop()));
    await this.#end();
  }
}
