import type { Events } from "pawl";
import type { Lane, OutcomeKind } from "pawl/service";
import { BoundedNames, DurationHistogram, type Sample } from "./samples.js";

interface TaskTimes {
  readonly duration: DurationHistogram;
  readonly wait: DurationHistogram;
  readonly total: DurationHistogram;
}

interface LaneCounter extends TaskTimes {
  readonly queue: string;
  readonly task: string;
  readonly outcomes: Map<OutcomeKind, number>;
}

const MAX_NAMES = 200;

/** Numbers of settled attempts, by queue and task. A lane's are found by the lane itself, which the jobs of a claim share. */
export class AttemptCounters {
  readonly #queues = new BoundedNames(MAX_NAMES);
  readonly #tasks = new BoundedNames(MAX_NAMES);
  readonly #classes = new BoundedNames(MAX_NAMES);
  readonly #byLane = new WeakMap<Lane, LaneCounter>();
  readonly #byName = new Map<string, LaneCounter>();
  readonly #times = new Map<string, TaskTimes>();
  readonly #failures = new Map<string, { readonly labels: Sample["labels"]; value: number }>();

  note({ lane, outcome, next, attempt, duration, sinceDue, failure }: Events["attempt.settled"]): void {
    const counter = this.#of(lane);
    counter.outcomes.set(outcome, (counter.outcomes.get(outcome) ?? 0) + 1);
    // What was given back was hardly begun, if at all.
    if (outcome === "released") return;
    counter.duration.record(duration);
    if (attempt === 1) counter.wait.record(sinceDue - duration);
    if (next === "succeeded" || next === "dead" || next === "cancelled") counter.total.record(sinceDue);
    if (failure !== undefined) this.#fail(counter.task, failure.kind === "error" ? failure.name : failure.kind);
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

  #of(lane: Lane): LaneCounter {
    let counter = this.#byLane.get(lane);
    if (counter === undefined) {
      counter = this.#named(this.#queues.of(lane.queue), this.#tasks.of(lane.task));
      this.#byLane.set(lane, counter);
    }
    return counter;
  }

  #named(queue: string, task: string): LaneCounter {
    const key = `${queue}\u0001${task}`;
    let counter = this.#byName.get(key);
    if (counter === undefined) {
      const times = this.#times.get(task) ?? { duration: new DurationHistogram(), wait: new DurationHistogram(), total: new DurationHistogram() };
      this.#times.set(task, times);
      counter = { queue, task, outcomes: new Map(), ...times };
      this.#byName.set(key, counter);
    }
    return counter;
  }

  #fail(task: string, name: string): void {
    const labels = { task, failure: this.#classes.of(name) };
    const key = `${labels.task}\u0001${labels.failure}`;
    const existing = this.#failures.get(key);
    if (existing === undefined) this.#failures.set(key, { labels, value: 1 });
    else existing.value++;
  }
}
