import { type IdSuffixSource, idSuffixSource } from "../core/jobs/id.js";
import { DEFAULTS } from "../core/values/defaults.js";
import { type Duration, milliseconds } from "../core/values/duration.js";
import { isPawlError } from "../core/values/error.js";
import type { Bus } from "../runtime/process/bus.js";
import { systemRandomBytes } from "../runtime/process/random.js";
import { Lifecycle, type Service } from "../runtime/process/service.js";
import type { Clock } from "../runtime/time/clock.js";
import { type Loop, loop } from "../runtime/time/loop.js";
import { ADMIT, type DutyDeclaration, type DutyReport, type DutyRequest, type Poll, PROMOTE, REAP, TICK } from "../store/port/duties/duties.js";
import type { Store, Wakeup } from "../store/port/index.js";
import { MAX_SERIES_ROWS } from "../store/port/observe/series.js";
import type { Duty } from "./duty.js";
import { DutyRunner } from "./duty-runner.js";
import { type Reaper, reaper } from "./reaper.js";
import { storeDuty } from "./store-duty.js";
import { ticker } from "./ticker.js";

export interface MaintenanceOptions {
  /** between looks at what waits for a duty */
  readonly pollInterval?: Duration;
  /** between sweeps for expired leases */
  readonly reapInterval?: Duration;
  /** how long leases last: for so long nothing is reaped after the store was away */
  readonly leaseDuration?: Duration;
  /** between prunings */
  readonly pruneInterval?: Duration;
  /** how long finished jobs are kept */
  readonly jobs?: Duration;
  /** how long dead jobs are kept */
  readonly dead?: Duration;
  /** how long the time series of counts are kept */
  readonly series?: Duration;
  /** sees finished jobs before they are let go; if it throws, they stay */
  readonly exportFinished?: DutyRequest["exportFinished"];
  /** rows handled by one statement */
  readonly batchSize?: number;
}

export interface MaintenanceDeps {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  /** for the ids of the jobs that schedules make */
  readonly idSuffixes?: IdSuffixSource;
  readonly options?: MaintenanceOptions;
  /** hears what every poll saw */
  readonly onPoll?: (poll: Poll) => void;
}

function late(dueIn = 0): number {
  return Math.max(0, -dueIn);
}

/**
 * The duties of one process. Any number of processes may run them at once: every duty is safe to repeat, and nobody
 * leads. At rest they share one cheap look at the store per poll.
 */
export class Maintenance implements Service {
  readonly #deps: MaintenanceDeps;
  readonly #lifecycle = new Lifecycle("this maintenance");
  readonly #pollEvery: number;
  readonly #awayAfterMs: number;
  readonly #duties: readonly Duty[];
  readonly #reaper: Reaper;
  #runners = new Map<string, DutyRunner>();
  #polls: Loop | undefined;
  #unsubscribe: (() => void) | undefined;
  #lastPollAt = 0;
  #lostAt: number | undefined;

  constructor(deps: MaintenanceDeps) {
    const { store, bus, clock, idSuffixes = idSuffixSource(systemRandomBytes), options = {} } = deps;
    const batch = options.batchSize ?? DEFAULTS.maintenance.batchSize;
    const lease = milliseconds(options.leaseDuration ?? DEFAULTS.lease.duration);
    const sweep = milliseconds(options.reapInterval ?? DEFAULTS.maintenance.reapInterval);
    this.#deps = deps;
    this.#pollEvery = Math.max(1, milliseconds(options.pollInterval ?? DEFAULTS.maintenance.pollInterval));
    // Holders renew every third of a lease, so an absence shorter than that costs nobody a lease.
    this.#awayAfterMs = Math.max(lease / 3, 2.5 * this.#pollEvery);
    const request: Omit<DutyRequest, "limit"> = {
      idSuffixes,
      keep: {
        finished: milliseconds(options.jobs ?? DEFAULTS.keep.jobs),
        dead: milliseconds(options.dead ?? DEFAULTS.keep.dead),
        series: milliseconds(options.series ?? DEFAULTS.keep.series),
        seriesRows: MAX_SERIES_ROWS,
        events: DEFAULTS.keep.events,
      },
      ...(options.exportFinished === undefined ? {} : { exportFinished: options.exportFinished }),
    };
    const stepOf = ({ name, maxLimit = batch }: DutyDeclaration) => {
      const limit = Math.min(batch, maxLimit);
      return () => store.duties.run(name, { ...request, limit });
    };
    this.#reaper = reaper({
      clock,
      step: stepOf({ name: REAP, dueBy: "poll" }),
      sweep,
      lease,
      onReaped: (leases, jobs) => bus.emit("leases.reaped", { leases, jobs }),
    });
    const period = milliseconds(options.pruneInterval ?? DEFAULTS.maintenance.pruneInterval);
    this.#duties = store.duties.declared.map((declaration) => {
      const step = stepOf(declaration);
      if (declaration.name === REAP) return this.#reaper;
      if (declaration.name === TICK) return ticker(step, (report) => this.#ticked(report));
      const onReport = declaration.name === PROMOTE ? ({ count }: DutyReport) => void (count > 0 && bus.emit("jobs.promoted", { count })) : undefined;
      return storeDuty(declaration, { clock, period, step, ...(onReport === undefined ? {} : { onReport }) });
    });
  }

  start(): Promise<void> {
    return this.#lifecycle.start(
      () => {
        const { store, bus, clock } = this.#deps;
        this.#lastPollAt = clock.monotonic();
        this.#runners = new Map(this.#duties.map((duty) => [duty.name, new DutyRunner(duty, clock, bus)]));
        this.#unsubscribe = store.onWakeup((wakeup) => this.#handleWakeup(wakeup));
        this.#polls = loop({
          clock,
          step: () => this.#poll(),
          onError: (error) => this.#pollFailed(error),
          backoff: { min: 100, max: Math.max(100, this.#pollEvery) },
          patience: 30_000,
        });
      },
      () => {},
    );
  }

  stop(): Promise<void> {
    return this.#lifecycle.stop(async () => {
      this.#unsubscribe?.();
      await Promise.all([this.#polls?.stop(), ...[...this.#runners.values()].map((runner) => runner.stop())]);
    });
  }

  async #poll(): Promise<number> {
    const { store, bus, clock } = this.#deps;
    const began = clock.monotonic();
    const poll = await store.duties.poll();
    const now = clock.monotonic();
    if (bus.hasListeners("maintenance.polled"))
      bus.emit("maintenance.polled", { duration: now - began, schedulesLate: late(poll.due.get(TICK)), delayedLate: late(poll.due.get(PROMOTE)) });
    if (this.#lostAt !== undefined) bus.emit("store.restored", { outage: now - this.#lostAt });
    this.#lostAt = undefined;
    // Either the store did not answer, or this process stood still. It cannot tell which, and need not.
    if (now - this.#lastPollAt > this.#awayAfterMs) this.#reaper.postpone();
    this.#lastPollAt = now;
    this.#scheduleDuties(poll);
    this.#deps.onPoll?.(poll);
    return this.#pollEvery * (1 + 0.1 * clock.random());
  }

  #scheduleDuties(poll: Poll): void {
    for (const runner of this.#runners.values()) {
      const due = runner.duty.due(poll);
      // What comes due after the next poll is for that one to say.
      if (due !== undefined && due <= this.#pollEvery) runner.schedule(Math.max(0, due));
    }
  }

  #ticked({ count, counts = {}, failures = [] }: DutyReport): void {
    const { bus } = this.#deps;
    bus.emit("schedules.ticked", { schedules: count, jobs: counts.jobs ?? 0, lateness: counts.latest ?? 0 });
    for (const error of failures) bus.emit("duty.failed", { duty: TICK, error });
  }

  /** Said once per absence; the poll goes on trying. */
  #pollFailed(error: unknown): void {
    const { bus, clock } = this.#deps;
    bus.emit("duty.failed", { duty: "poll", error });
    // The store is there and cannot say what waits: every duty looks for itself, or this would be the end of them all.
    if (isPawlError(error, "store_failed")) this.#scheduleDuties({ now: 0, due: new Map(this.#duties.map(({ name }) => [name, 0])) });
    if (this.#lostAt !== undefined) return;
    this.#lostAt = clock.monotonic();
    bus.emit("store.lost", { error });
  }

  #handleWakeup(wakeup: Wakeup): void {
    const duty = DUTY_OF_WAKEUP[wakeup.kind];
    if (duty !== undefined && "dueIn" in wakeup && wakeup.dueIn <= this.#pollEvery) this.#runners.get(duty)?.schedule(Math.max(0, wakeup.dueIn));
  }
}

const DUTY_OF_WAKEUP: Partial<Record<Wakeup["kind"], string>> = { scheduled: PROMOTE, admit: ADMIT, tick: TICK };
