import { DEFAULTS } from "../core/defaults.js";
import { type Duration, milliseconds } from "../core/duration.js";
import { isPawlError } from "../core/error.js";
import { type TailSource, tailSource } from "../core/id.js";
import type { Bus } from "../runtime/bus.js";
import type { Clock } from "../runtime/clock.js";
import { type Loop, loop } from "../runtime/loop.js";
import { systemRandomBytes } from "../runtime/random.js";
import { Lifecycle, type Service } from "../runtime/service.js";
import type { Hint, Store } from "../store/port.js";
import type { PruneRules, Pulse } from "../store/port-duties.js";
import { admitter } from "./admitter.js";
import type { Duty } from "./duty.js";
import { eventTrimmer } from "./events.js";
import { expirer } from "./expirer.js";
import { folder } from "./folder.js";
import { intents } from "./intents.js";
import { promoter } from "./promoter.js";
import { pruner } from "./pruner.js";
import { type Reaper, reaper } from "./reaper.js";
import { Runs } from "./runs.js";
import { seriesTrimmer } from "./series.js";
import { ticker, trimmer } from "./ticker.js";
import { unblocker } from "./unblocker.js";

export interface MaintenanceOptions {
  /** between looks at what waits for a duty */
  readonly pulse?: Duration;
  /** between sweeps for expired leases */
  readonly sweep?: Duration;
  /** how long leases last: for so long nothing is reaped after the store was away */
  readonly lease?: Duration;
  /** between prunings */
  readonly prune?: Duration;
  /** how long finished jobs are kept */
  readonly finished?: Duration;
  /** how long dead jobs are kept */
  readonly dead?: Duration;
  /** how long the time series of counts are kept */
  readonly series?: Duration;
  /** sees finished jobs before they are let go; if it throws, they stay */
  readonly exportFinished?: PruneRules["exportFinished"];
  /** rows handled by one statement */
  readonly batch?: number;
}

export interface MaintenanceParts {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  /** for the ids of the jobs that schedules make */
  readonly tails?: TailSource;
  readonly options?: MaintenanceOptions;
  /** hears what every pulse saw */
  readonly onPulse?: (pulse: Pulse) => void;
}

function late(dueIn = 0): number {
  return Math.max(0, -dueIn);
}

/** What a pulse would say if everything were due. */
const ANYTHING: Pulse = { now: 0, scheduledIn: 0, leaseIn: 0, timerIn: 0, tickIn: 0, admitIn: 0, intents: true, unverified: true, deltas: true };

/**
 * The duties of one process. Any number of processes may run them at once: every duty is safe to repeat, and nobody
 * leads. At rest they share one cheap look at the store per pulse.
 */
export class Maintenance implements Service {
  readonly #parts: MaintenanceParts;
  readonly #lifecycle = new Lifecycle("this maintenance");
  readonly #pulseEvery: number;
  readonly #awayAfter: number;
  readonly #duties: readonly Duty[];
  readonly #reaper: Reaper;
  #runs = new Map<string, Runs>();
  #pulses: Loop | undefined;
  #unhear: (() => void) | undefined;
  #pulsedAt = 0;
  #lostAt: number | undefined;

  constructor(parts: MaintenanceParts) {
    const { store, bus, clock, tails = tailSource(systemRandomBytes), options = {} } = parts;
    const batch = options.batch ?? DEFAULTS.maintenance.batch;
    const lease = milliseconds(options.lease ?? DEFAULTS.lease.duration);
    const sweep = milliseconds(options.sweep ?? DEFAULTS.maintenance.sweep);
    this.#parts = parts;
    this.#pulseEvery = Math.max(1, milliseconds(options.pulse ?? DEFAULTS.maintenance.pulse));
    // Holders renew every third of a lease, so an absence shorter than that costs nobody a lease.
    this.#awayAfter = Math.max(lease / 3, 2.5 * this.#pulseEvery);
    this.#reaper = reaper(store, clock, { batch, sweep, lease }, (leases, jobs) => bus.emit("leases.reaped", { leases, jobs }));
    const prune = milliseconds(options.prune ?? DEFAULTS.maintenance.prune);
    const rules: PruneRules = {
      finished: milliseconds(options.finished ?? DEFAULTS.keep.finished),
      dead: milliseconds(options.dead ?? DEFAULTS.keep.dead),
      limit: batch,
      ...(options.exportFinished === undefined ? {} : { exportFinished: options.exportFinished }),
    };
    this.#duties = [
      promoter(store, batch, (count) => bus.emit("jobs.promoted", { count })),
      this.#reaper,
      ticker(store, Math.min(batch, DEFAULTS.schedule.batch), tails, ({ schedules, jobs, latest, failures = [] }) => {
        bus.emit("schedules.ticked", { schedules, jobs, latest });
        for (const error of failures) bus.emit("duty.failed", { duty: "tick", error });
      }),
      admitter(store, batch),
      expirer(store, batch),
      unblocker(store, batch),
      intents(store, batch),
      folder(store, batch),
      pruner(store, clock, prune, rules),
      trimmer(store, clock, prune, batch, rules.dead),
      eventTrimmer(store, clock, prune),
      seriesTrimmer(store, clock, prune, milliseconds(options.series ?? DEFAULTS.keep.series)),
    ];
  }

  start(): Promise<void> {
    return this.#lifecycle.start(
      () => {
        const { store, bus, clock } = this.#parts;
        this.#pulsedAt = clock.monotonic();
        this.#runs = new Map(this.#duties.map((duty) => [duty.name, new Runs(duty, clock, bus)]));
        this.#unhear = store.onHint((hint) => this.#hear(hint));
        this.#pulses = loop({
          clock,
          step: () => this.#pulse(),
          onError: (error) => this.#missed(error),
          backoff: { min: 100, max: Math.max(100, this.#pulseEvery) },
          patience: 30_000,
        });
      },
      () => {},
    );
  }

  stop(): Promise<void> {
    return this.#lifecycle.stop(async () => {
      this.#unhear?.();
      await Promise.all([this.#pulses?.stop(), ...[...this.#runs.values()].map((runs) => runs.stop())]);
    });
  }

  async #pulse(): Promise<number> {
    const { store, bus, clock } = this.#parts;
    const began = clock.monotonic();
    const pulse = await store.duties.pulse();
    const now = clock.monotonic();
    if (bus.hears("duties.pulsed"))
      bus.emit("duties.pulsed", { duration: now - began, schedulesLate: late(pulse.tickIn), delayedLate: late(pulse.scheduledIn) });
    if (this.#lostAt !== undefined) bus.emit("store.back", { away: now - this.#lostAt });
    this.#lostAt = undefined;
    // Either the store did not answer, or this process stood still. It cannot tell which, and need not.
    if (now - this.#pulsedAt > this.#awayAfter) this.#reaper.standBack();
    this.#pulsedAt = now;
    this.#expect(pulse);
    this.#parts.onPulse?.(pulse);
    return this.#pulseEvery * (1 + 0.1 * clock.random());
  }

  #expect(pulse: Pulse): void {
    for (const runs of this.#runs.values()) {
      const due = runs.duty.due(pulse);
      // What comes due after the next pulse is for that one to say.
      if (due !== undefined && due <= this.#pulseEvery) runs.expect(Math.max(0, due));
    }
  }

  /** Said once per absence; the pulse goes on trying. */
  #missed(error: unknown): void {
    const { bus, clock } = this.#parts;
    bus.emit("duty.failed", { duty: "pulse", error });
    // The store is there and cannot say what waits: every duty looks for itself, or this would be the end of them all.
    if (isPawlError(error, "store_failed")) this.#expect(ANYTHING);
    if (this.#lostAt !== undefined) return;
    this.#lostAt = clock.monotonic();
    bus.emit("store.lost", { error });
  }

  #hear(hint: Hint): void {
    if (hint.kind === "scheduled" && hint.dueIn <= this.#pulseEvery) this.#runs.get("promote")?.expect(Math.max(0, hint.dueIn));
    if (hint.kind === "admit" && hint.dueIn <= this.#pulseEvery) this.#runs.get("admit")?.expect(Math.max(0, hint.dueIn));
    if (hint.kind === "tick" && hint.dueIn <= this.#pulseEvery) this.#runs.get("tick")?.expect(Math.max(0, hint.dueIn));
  }
}
