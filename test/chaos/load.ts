import { setTimeout as pause } from "node:timers/promises";
import type { EnqueueOptions } from "../../packages/pawl/src/index.js";
import type { ProcessFixture } from "../support/fixtures/process-fixture.js";
import type { SeededRandom } from "../support/seeded-random.js";

interface Order {
  readonly task: string;
  readonly input: object;
  readonly options?: EnqueueOptions;
}

/** Faults that are nobody's fault must not convict a job that is merely long. */
const INNOCENT = { maxCrashes: 1_000 } as const;

/**
 * Enqueues a mix of work for as long as it is asked to. Every order has an idempotency key and is repeated with it until it is
 * acknowledged, as a careful caller does: so each must be stored exactly once.
 */
export class Load {
  readonly counter = new Map<string, number>();
  requests = 0;
  repeated = 0;
  #open = true;
  readonly #done: Promise<unknown>;

  constructor(
    private readonly fixture: ProcessFixture,
    private readonly random: SeededRandom,
    lanes = 4,
  ) {
    this.#done = Promise.all(Array.from({ length: lanes }, () => this.#run()));
  }

  async stop(): Promise<void> {
    this.#open = false;
    await this.#done;
  }

  async #run(): Promise<void> {
    while (this.#open) {
      await this.#order();
      await pause(this.random.between(5, 120));
    }
  }

  async #order(): Promise<void> {
    const { task, input, options } = this.#next();
    const request = `request-${++this.requests}`;
    for (;;) {
      try {
        const { id } = await this.fixture.pawl.enqueue(task, input, { ...options, idempotencyKey: request });
        this.fixture.acknowledged.push(id);
        this.counter.set(task, (this.counter.get(task) ?? 0) + 1);
        return;
      } catch {
        this.repeated++;
        await pause(50);
      }
    }
  }

  #next(): Order {
    const { random } = this;
    const roll = random.random();
    if (roll < 0.3) return { task: "counter", input: { ms: random.between(0, 300) }, options: INNOCENT };
    if (roll < 0.55) return { task: "quick", input: {}, options: INNOCENT };
    if (roll < 0.65) return { task: "counter", input: {}, options: { ...INNOCENT, delay: random.between(100, 8_000) } };
    if (roll < 0.75) return { task: "once", input: { ms: random.between(0, 100) }, options: INNOCENT };
    if (roll < 0.9) return { task: "slow", input: { ms: random.between(100, 4_000) }, options: INNOCENT };
    if (roll < 0.985) return { task: "fragile", input: { ms: random.between(0, 300) } };
    if (roll < 0.996) return { task: "block", input: { ms: random.between(100, 4_000), busy: true }, options: INNOCENT };
    return { task: "poison", input: { how: random.pick(["exit", "abort", "kill"]) } };
  }
}
