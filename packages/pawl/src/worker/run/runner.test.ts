import { expect, test } from "vitest";
import type { Context } from "../../core/jobs/context.js";
import type { Outcome } from "../../core/jobs/outcome.js";
import { task } from "../../core/jobs/task.js";
import { Share } from "../../core/sharing/fair-share.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { Claimed } from "../../store/port/settle/leases.js";
import { HeldLease } from "../settle/held-lease.js";
import { Attempt } from "./attempt.js";
import { compose } from "./middleware.js";
import { Outages } from "./outage.js";
import { Runner } from "./runner.js";
import { TaskPlans } from "./task-plan.js";

/** A clock whose timers never run: what an event loop looks like to itself while a handler blocks it. */
function stuckClock() {
  const clock = { now: 0, monotonic: () => clock.now, after: () => () => {}, soon: () => {}, random: () => 0 };
  return clock satisfies Clock & { now: number };
}

test("a result that comes after its timeout is late, though no timer could say so", () => {
  const clock = stuckClock();
  const outcomes: Outcome[] = [];
  const slow = task("slow", { timeout: "1s" }, ({ takes }: { takes: number }) => {
    clock.now += takes;
    return "done";
  });
  const runner = new Runner({
    clock,
    concurrency: 1,
    mostLost: 1,
    invoke: compose([]),
    contextOf: () => ({}) as Context,
    outagesOf: () => new Outages("memory:"),
    isFull: () => false,
    onStart: () => {},
    onOutcome: (_, outcome) => void outcomes.push(outcome),
    onFreed: () => {},
    onEnded: () => {},
    isBlocked: () => false,
    onRoom: () => {},
    onStuck: () => {},
    onOverdue: () => {},
  });
  const lane = { queue: "default", priority: 5, tenant: "default", task: "slow" } as const;
  const plan = new TaskPlans(new Map([["slow", slow]]), {}).of(lane);
  const lease = new HeldLease({ lease: "1", now: 0, jobs: [] } as unknown as Claimed, 0, 0, 15_000, false);
  for (const takes of [999, 1_000]) {
    const job = { id: "x" as never, lane, input: JSON.stringify({ takes }), options: undefined, dueAt: 0, attempts: 0, crashes: 0 };
    runner.add([new Attempt(job, plan as NonNullable<typeof plan>, lease, new Share(undefined))], false);
  }
  expect(outcomes).toMatchObject([{ kind: "succeeded" }, { kind: "failed", failure: { kind: "timeout" } }]);
});
