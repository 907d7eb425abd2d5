import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** How a process of our own is started: by the same program, with other words. */
export interface SpawnOptions {
  /** what follows `node`: its flags, the program, and what it is to do */
  readonly args: readonly string[];
  onLine(line: string): void;
  /** whether another one takes the place of one that ended by itself with that code */
  isReplaced(code: number | null): boolean;
}

/**
 * A worker in a process of its own, so that code that changed can be loaded anew: a module once loaded stays for the life of
 * its process. The next one starts before the last one stops, and that finishes what it runs.
 */
export class WorkerProcess {
  #current: ChildProcess | undefined;
  /** all that have not gone yet, with when they have */
  readonly #running = new Map<ChildProcess, Promise<number | null>>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(private readonly spawning: SpawnOptions) {}

  /** Puts a new process in the place of the one there is. If the new one does not come up, the old one stays. */
  replace(): Promise<boolean> {
    const next = this.#last.then(() => this.#replace());
    this.#last = next;
    return next;
  }

  async #replace(): Promise<boolean> {
    const next = this.#spawn();
    const up = await Promise.race([once(next, "message").then(() => true), once(next, "exit").then(() => false)]);
    if (!up) return false;
    const old = this.#current;
    this.#current = next;
    old?.kill("SIGTERM");
    return true;
  }

  /** Lets what runs finish. Answers with what they exited with. */
  async stop(): Promise<readonly (number | null)[]> {
    await this.#last;
    const current = this.#current;
    this.#current = undefined;
    current?.kill("SIGTERM");
    return Promise.all(this.#running.values());
  }

  /** Resolves when they are gone, which is at once: until then they count as users of an embedded store. */
  async kill(): Promise<void> {
    const left = [...this.#running.keys()].filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
    // Not until they are "close": what they started may hold on to their pipes.
    const exited = left.map((child) => once(child, "exit"));
    for (const child of left) child.kill("SIGKILL");
    await Promise.all(exited);
  }

  #spawn(): ChildProcess {
    const child = spawn(process.execPath, this.spawning.args, { stdio: ["ignore", "pipe", "pipe", "ipc"] });
    for (const stream of [child.stdout, child.stderr]) {
      if (stream !== null) createInterface({ input: stream }).on("line", (line) => this.spawning.onLine(line));
    }
    const exited = once(child, "close").then(([code]) => code as number | null);
    this.#running.set(
      child,
      exited.finally(() => this.#running.delete(child)),
    );
    void exited.then((code) => {
      if (child === this.#current && this.spawning.isReplaced(code)) void this.replace();
    });
    return child;
  }
}
