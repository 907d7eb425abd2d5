import type { Events, Lane, OutcomeKind } from "pawl";
import { Names, type Sample, Times } from "./series.js";

interface TaskTimes {
  readonly duration: Times;
  readonly wait: Times;
  readonly total: Times;
}

interface LaneTally extends TaskTimes {
  readonly queue: string;
  readonly task: string;
  readonly outcomes: Map<OutcomeKind, number>;
}

const MOST_NAMES = 200;

/** Numbers of settled attempts, by queue and task. A lane's are found by the lane itself, which the jobs of a claim share. */
export class AttemptTallies {
  readonly #queues = new Names(MOST_NAMES);
  readonly #tasks = new Names(MOST_NAMES);
  readonly #classes = new Names(MOST_NAMES);
  readonly #byLane = new WeakMap<Lane, LaneTally>();
  readonly #byName = new Map<string, LaneTally>();
  readonly #times = new Map<string, TaskTimes>();
  readonly #failures = new Map<string, { readonly labels: Sample["labels"]; value: number }>();

  note({ lane, outcome, next, attempt, duration, sinceDue, failure }: Events["attempt.settled"]): void {
    const tally = this.#of(lane);
    tally.outcomes.set(outcome, (tally.outcomes.get(outcome) ?? 0) + 1);
    // What was given back was hardly begun, if at all.
    if (outcome === "released") return;
    tally.duration.record(duration);
    if (attempt === 1) tally.wait.record(sinceDue - duration);
    if (next === "succeeded" || next === "dead" || next === "cancelled") tally.total.record(sinceDue);
    if (failure !== undefined) this.#fail(tally.task, failure.kind === "error" ? failure.name : failure.kind);
  }

  *settled(): Generator<Sample> {
    for (const { queue, task, outcomes } of this.#byName.values())
      for (const [outcome, value] of outcomes) yield { labels: { queue, task, outcome }, value };
  }

  failures(): Iterable<Sample> {
    return this.#failures.values();
  }

  *times(name: string, of: keyof TaskTimes): Generator<Sample> {
    for (const [task, times] of this.#times) yield* times[of].samples(name, { task });
  }

  /** Of the tasks seen here, as far as there is an objective for them. */
  *objectives(of: Readonly<Record<string, number>>): Generator<Sample> {
    for (const task of this.#times.keys()) {
      const ms = Object.hasOwn(of, task) ? of[task] : of["*"];
      if (ms !== undefined) yield { labels: { task }, value: ms / 1_000 };
    }
  }

  #of(lane: Lane): LaneTally {
    let tally = this.#byLane.get(lane);
    if (tally === undefined) {
      tally = this.#named(this.#queues.of(lane.queue), this.#tasks.of(lane.task));
      this.#byLane.set(lane, tally);
    }
    return tally;
  }

  #named(queue: string, task: string): LaneTally {
    const key = `${queue}\u0001${task}`;
    let tally = this.#byName.get(key);
    if (tally === undefined) {
      const times = this.#times.get(task) ?? { duration: new Times(), wait: new Times(), total: new Times() };
      this.#times.set(task, times);
      tally = { queue, task, outcomes: new Map(), ...times };
      this.#byName.set(key, tally);
    }
    return tally;
  }

  #fail(task: string, name: string): void {
    const labels = { task, class: this.#classes.of(name) };
    const key = `${labels.task}\u0001${labels.class}`;
    const known = this.#failures.get(key);
    if (known === undefined) this.#failures.set(key, { labels, value: 1 });
    else known.value++;
  }
}
