import { pawlError } from "../core/error.js";
import { checkBoolean, checkKeys, checkObject } from "../core/option.js";
import { keepAlive } from "../runtime/alive.js";
import { exitOn, onStopSignal } from "../runtime/signals.js";
import { WORK_KEYS, type WorkerOptions, type WorkOptions } from "./options.js";
import type { Worker } from "./worker.js";

/** The workers of an open store in this process, and how it comes to its end: the same wherever their jobs come from. */
export class Household {
  readonly #workers = new Set<Worker>();
  readonly #atEnd: (() => void)[] = [];
  readonly #end: () => Promise<void>;
  #closing: Promise<void> | undefined;

  /** `end` closes the rest, once no worker is left: handlers may still enqueue while they finish. */
  constructor(end: () => Promise<void>) {
    this.#end = end;
  }

  get workers(): readonly Worker[] {
    return [...this.#workers];
  }

  checkOpen(): void {
    if (this.#closing !== undefined) throw pawlError("closed", { what: "pawl" });
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

  untilSignal(): Promise<void> {
    return new Promise((resolve) => {
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
      for (const call of this.#atEnd) call();
    });
    return this.#closing;
  }

  async #stop(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.stop()));
    await this.#end();
  }
}
