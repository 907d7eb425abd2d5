import type { ProcessFixture } from "../support/fixtures/process-fixture.js";
import type { WorkerProcess } from "../support/processes/worker-process.js";

const PACE = {
  work: { leaseDuration: "3s", renewInterval: "700ms", concurrency: 10, shutdownGrace: "1s" },
  open: {
    maintenance: { leaseDuration: "3s", reapInterval: "300ms", pollInterval: "200ms" },
    postgres: { startupWait: 120_000, statementTimeout: 4_000, connections: 6 },
  },
} as const;

/** Worker processes, replaced when they end, as a supervisor does. */
export class Fleet {
  #replacing = true;
  /** exits nobody asked for */
  readonly surprises: string[] = [];

  constructor(
    private readonly fixture: ProcessFixture,
    size: number,
  ) {
    for (let i = 0; i < size; i++) this.#start();
  }

  get alive(): readonly WorkerProcess[] {
    return this.fixture.children.filter(({ exit }) => exit === undefined);
  }

  /** From here on, who ends stays away. */
  rest(): void {
    this.#replacing = false;
  }

  #start(): void {
    const worker = this.fixture.spawn(PACE.work, PACE.open);
    void worker.exited.then(({ code, signal }) => {
      // 0 and 143: told to stop; SIGTERM: told before it was ready; SIGKILL, 7, SIGABRT: the chaos and its poison pills.
      const expected = code === 0 || code === 7 || code === 143 || signal === "SIGKILL" || signal === "SIGABRT" || signal === "SIGTERM";
      if (!expected) this.surprises.push(worker.describe());
      if (this.#replacing) this.#start();
    });
  }
}
