import type { Clock } from "../runtime/time/clock.js";
import type { DutyDeclaration, DutyReport, Poll } from "../store/port/duties/duties.js";
import type { Duty, DutyResult } from "./duty.js";

/** ms within which periodic duties have their first turn, for a store that lacks what one of them makes ahead */
const FIRST_TURN_MS = 60_000;

export interface StoreDutyOptions {
  readonly clock: Clock;
  /** ms between the turns of a periodic duty */
  readonly period: number;
  /** one step of the duty */
  readonly step: () => Promise<DutyReport>;
  readonly onReport?: (report: DutyReport) => void;
}

/** A duty that the store declares. */
export function storeDuty({ name, dueBy }: DutyDeclaration, { clock, period, step, onReport }: StoreDutyOptions): Duty {
  const timer = dueBy === "poll" ? pollTimer(name) : periodTimer(clock, period);
  return {
    name,
    due: timer.due,
    async run() {
      const report = await step();
      timer.onDone();
      onReport?.(report);
      return resultOf(report);
    },
  };
}

export function resultOf({ count, more, nextIn }: DutyReport): DutyResult {
  if (more) return { count, nextIn: 0 };
  return nextIn === undefined ? { count } : { count, nextIn: Math.max(0, nextIn) };
}

interface DutyTimer {
  readonly due: (poll: Poll) => number | undefined;
  readonly onDone: () => void;
}

function pollTimer(name: string): DutyTimer {
  return { due: ({ due }) => due.get(name), onDone: () => {} };
}

/** By the clock alone: nothing waits for it. Spread, so that processes started together do not meet. */
function periodTimer(clock: Clock, period: number): DutyTimer {
  let dueAt = clock.monotonic() + Math.min(period, FIRST_TURN_MS) * clock.random();
  return {
    due: () => dueAt - clock.monotonic(),
    onDone() {
      dueAt = clock.monotonic() + period * (1 + 0.2 * clock.random());
    },
  };
}
