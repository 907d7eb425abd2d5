import { pawlError } from "../../core/values/error.js";

/**
 * Something that runs until it is stopped. One contract for all of them:
 * - `start` once: a second start rejects with `already_started`, a start after `stop` with `closed`;
 * - a start that fails rejects, having undone what it began, and the service is closed;
 * - `stop` before `start` closes it; `stop` while it starts waits for the start, then stops;
 * - `stop` twice answers with the same end, and never rejects because of the work it ends.
 *
 * A store that is away is no reason for a start to fail: services begin, wait for it, and go on.
 */
export interface Service {
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** The contract, written once: services give it what to do, and it says when. */
export class Lifecycle {
  #state: "new" | "started" | "closed" = "new";
  #starting: Promise<void> | undefined;
  #ending: Promise<void> | undefined;

  constructor(private readonly what: string) {}

  get state(): "new" | "started" | "closed" {
    return this.#state;
  }

  async start(begin: () => void | Promise<void>, undo: () => void | Promise<void>): Promise<void> {
    if (this.#state === "closed") throw pawlError("closed", { what: this.what });
    if (this.#state === "started") throw pawlError("already_started", { what: this.what });
    this.#state = "started";
    this.#starting = (async () => {
      try {
        await begin();
      } catch (error) {
        this.#state = "closed";
        this.#ending = Promise.resolve();
        await undo();
        throw error;
      }
    })();
    await this.#starting;
  }

  stop(end: () => Promise<void>): Promise<void> {
    if (this.#ending !== undefined) return this.#ending;
    const begun = this.#starting;
    this.#state = "closed";
    this.#ending = begun === undefined ? Promise.resolve() : begun.then(end, () => {});
    return this.#ending;
  }
}
