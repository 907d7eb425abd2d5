import type { Seat, Seats } from "../store/port-seats.js";
import type { ClaimerParts } from "./claimer.js";

/** ms between wake-ups from which on they are few enough for the next job to be worth waiting for in a seat */
const CALM = 10;

/**
 * Sits in the store's seat while the worker has empty hands and knows of no work, so that the next job is handed to it. With
 * one job in hand it stands up: another worker's hands may be empty. What arrives in that moment is held like a job claimed
 * ahead.
 */
export class Sitter {
  readonly #seat: Seat;
  #sits = false;
  #heardAt = Number.NEGATIVE_INFINITY;
  #gap = Number.POSITIVE_INFINITY;
  #stopped = false;

  constructor(
    private readonly parts: ClaimerParts,
    seats: Seats,
    tasks: readonly string[],
  ) {
    const { worker, settings, onClaimed, onError } = parts;
    this.#seat = seats.of({
      worker,
      queues: settings.queues,
      tasks,
      duration: settings.lease,
      onHanded: ({ claimed, since }) => {
        this.#sits = false;
        onClaimed(claimed, since, false);
      },
      onError: (error) => onError("wait for work", error),
    });
  }

  /** Work was heard of. */
  hear(): void {
    const now = this.parts.clock.monotonic();
    this.#gap = now - this.#heardAt;
    this.#heardAt = now;
  }

  /** Sits down, stays, or stands up. `idle`: the worker neither knows of work nor asks for any. */
  choose(idle: boolean): void {
    const { hands, settings, takesAny } = this.parts;
    const empty = hands.held === 0 && hands.free >= settings.concurrency && takesAny?.() === true;
    if (this.#sits && !empty) {
      this.#sits = false;
      this.#seat.standUp();
    } else if (!this.#sits && empty && idle && !this.#stopped && this.#isCalm()) {
      this.#sits = true;
      this.#seat.sit();
    }
  }

  /** Answers once it has stood up. */
  stop(): Promise<void> {
    this.#stopped = true;
    return this.#seat.leave();
  }

  #isCalm(): boolean {
    return this.#gap >= CALM || this.parts.clock.monotonic() - this.#heardAt >= CALM;
  }
}

/** None where the store has no seats, or jobs would have to be chosen among. What needs a part of this worker is claimed. */
export function sitterOf(parts: ClaimerParts): Sitter | undefined {
  const { store, settings, plans, takesAny } = parts;
  const { seats } = store;
  if (seats === undefined || takesAny === undefined || settings.bands !== undefined || settings.tenants !== undefined) return undefined;
  const tasks = settings.tasks.filter((task) => {
    const options = plans.task(task)?.options;
    return options !== undefined && options.atMostOnce !== true && options.needs === undefined;
  });
  return tasks.length === 0 ? undefined : new Sitter(parts, seats, tasks);
}
