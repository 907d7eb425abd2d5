import { checkBoolean, checkKeys, checkObject } from "../core/option.js";
import { keepAlive } from "../runtime/alive.js";
import { exitOn, onStopSignal } from "../runtime/signals.js";
import { closedError } from "../store/closable.js";
import { WORK_KEYS, type WorkerOptions, type WorkOptions } from "./options.js";
import type { Worker } from "./worker.js";

/** The workers of an open store in this process, and how it comes to its end: the same wherever their jobs come from. */
export class Household {
  readonly #workers = new Set<Worker>();
  readonly #atEnd: (() => void)[] = [];
  readonly #end: () => Promise<void>;
  #closing: Promise<void> | undefined;
  #closed = false;

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

  async work(given: WorkOptions, make: (options: WorkerOptions) => Worker): Promise<Worker> {
    checkKeys(checkObject("options", given), WORK_KEYS);
    const { signals = false, ...options } = given;
    checkBoolean("signals", signals);
    this.checkOpen();
    const worker = make(options);
    this.#workers.add(worker);
    const release = keepAlive();
    void worker.stopped.finally(() => {
      release();
      this.#workers.delete(worker);
    });
    await worker.start();
    if (signals) void this.untilSignal();
    return worker;
  }

  async untilSignal(): Promise<void> {
    this.checkNotClosed();
    await new Promise<void>((resolve) => {
      const stop = onStopSignal((signal, count) => {
        if (count === 1) void this.close();
        else {
          for (const worker of this.#workers) worker.kill();
          exitOn(signal);
        }
      });
      // However it comes to its end, the signals of the process are its own again.
      this.#atEnd.push(stop, resolve);
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#stop().finally(() => {
      this.#closed = true;
      for (const call of this.#atEnd) call();
    });
    return this.#closing;
  }

  async #stop(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.stop()));
    await this.#end();
  }
}
