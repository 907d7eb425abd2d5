import type { Stage } from "../support/stage.js";
import type { WorkerProcess } from "../support/worker-process.js";

const PACE = {
  work: { lease: "3s", renewal: "700ms", concurrency: 10, drain: "1s" },
  open: { maintenance: { lease: "3s", sweep: "300ms", pulse: "200ms" }, postgres: { patience: 120_000, statementTimeout: 4_000, connections: 6 } },
} as const;

/** Worker processes, replaced when they end, as a supervisor does. */
export class Fleet {
  #replacing = true;
  /** exits nobody asked for */
  readonly surprises: string[] = [];

  constructor(
    private readonly stage: Stage,
    size: number,
  ) {
    for (let i = 0; i < size; i++) this.#start();
  }

  get alive(): readonly WorkerProcess[] {
    return this.stage.children.filter(({ exit }) => exit === undefined);
  }

  /** From here on, who ends stays away. */
  rest(): void {
    this.#replacing = false;
  }

  #start(): void {
    const worker = this.stage.spawn(PACE.work, PACE.open);
    void worker.exited.then(({ code, signal }) => {
      // 0 and 143: told to stop; SIGTERM: told before it was ready; SIGKILL, 7, SIGABRT: the chaos and its poison pills.
      const expected = code === 0 || code === 7 || code === 143 || signal === "SIGKILL" || signal === "SIGABRT" || signal === "SIGTERM";
      if (!expected) this.surprises.push(worker.describe());
      if (this.#replacing) this.#start();
    });
  }
}
