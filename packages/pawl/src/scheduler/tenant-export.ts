import type { JobId } from "../core/id.js";
import type { TenantPolicy } from "../core/policy.js";
import type { ScheduleRef } from "../core/schedule.js";
import type { TargetRef } from "../core/target.js";
import type { Clock } from "../runtime/clock.js";
import type { BreakerRef } from "../store/port-breakers.js";
import type { JobStore, WholePage } from "../store/port-jobs.js";
import type { GateRef } from "../store/port-limits.js";
import type { Audit, AuditView } from "./audit.js";
import type { BreakersOperator, BreakerView } from "./breakers.js";
import type { Keys, KeyView } from "./keys.js";
import type { LimitsOperator, LimitView } from "./limits-view.js";
import type { ScheduleView, TickView } from "./schedule-view.js";
import type { Scheduler, TenantView } from "./scheduler.js";
import type { TargetView } from "./targets.js";
import { type AttemptView, attemptView, type JobView, type LogView, logView, viewOf } from "./view.js";

/** One line of an export. The first is a `tenant`, the last an `end`: without that one it was cut off. */
export type ExportEntry =
  | { readonly kind: "tenant"; readonly format: 1; readonly tenant: string; readonly paused: boolean; readonly policy: TenantPolicy }
  | { readonly kind: "schedule"; readonly schedule: ScheduleView; readonly ticks: readonly TickView[] }
  | { readonly kind: "target"; readonly target: TargetView }
  | { readonly kind: "limit"; readonly limit: LimitView }
  | { readonly kind: "breaker"; readonly breaker: BreakerView }
  | { readonly kind: "key"; readonly key: KeyView }
  | { readonly kind: "audit"; readonly entry: AuditView }
  | { readonly kind: "job"; readonly job: JobView; readonly history: readonly AttemptView[]; readonly logs: readonly LogView[] }
  | { readonly kind: "end"; readonly entries: number };

/** What an export reads: each of them sees this tenant only, or is asked for it. */
export interface ExportParts {
  readonly scheduler: Scheduler;
  readonly jobs: Pick<JobStore, "whole">;
  readonly clock: Clock;
  readonly limits: LimitsOperator;
  readonly breakers: BreakersOperator;
  readonly keys: Keys;
  readonly audit: Audit;
  readonly tenant: () => Promise<TenantView>;
}

const PAGE = 200;
/** ticks of a schedule that are told, the newest ones */
const TICKS = 1_000;
const JOBS = { limit: 500, bytes: 4 * 1_048_576 };
/** jobs that are told in one turn of the event loop: others want theirs in between */
const A_TURN = 25;

/** Everything that is held of a tenant, two pages in memory at a time. What comes in meanwhile may be in it or not. */
export async function* exported(name: string, parts: ExportParts): AsyncGenerator<ExportEntry, void> {
  let entries = 0;
  for await (const entry of contents(name, parts)) {
    entries++;
    yield entry;
  }
  yield { kind: "end", entries };
}

async function* contents(name: string, parts: ExportParts): AsyncGenerator<ExportEntry, void> {
  const { scheduler, limits, breakers, keys, audit, tenant } = parts;
  const { paused, policy } = await tenant();
  yield { kind: "tenant", format: 1, tenant: name, paused, policy };
  const { schedules, targets } = scheduler;
  for await (const { schedules: page } of pages((after?: ScheduleRef) => schedules.list({}, from(after))))
    for (const schedule of page) yield { kind: "schedule", schedule, ticks: await schedules.ticks(schedule, { limit: TICKS }) };
  for await (const page of pages((after?: TargetRef) => targets.list({}, from(after))))
    for (const target of page.targets) yield { kind: "target", target };
  for await (const page of pages((after?: GateRef) => limits.list({ tenant: name }, from(after))))
    for (const limit of page.limits) yield { kind: "limit", limit };
  for await (const page of pages((after?: BreakerRef) => breakers.list({ tenant: name }, from(after))))
    for (const breaker of page.breakers) yield { kind: "breaker", breaker };
  for await (const page of pages((after?: string) => keys.list(from(after)))) for (const key of page.keys) yield { kind: "key", key };
  let before: { readonly before?: number } | undefined = {};
  while (before !== undefined) {
    const { entries, next }: Awaited<ReturnType<Audit["list"]>> = await audit.list({ tenant: name }, { limit: PAGE, ...before });
    for (const entry of entries) yield { kind: "audit", entry };
    before = next === undefined ? undefined : { before: next };
  }
  yield* jobsOf(name, parts);
}

/** The next page is read while one is told. Any trouble ends the export: what it left out would look as if it were not there. */
async function* jobsOf(tenant: string, { jobs, clock }: ExportParts): AsyncGenerator<ExportEntry, void> {
  const scope = { tenant };
  const read = (after?: JobId) => {
    const page = jobs.whole(scope, { ...JOBS, ...(after === undefined ? {} : { after }) });
    // Whoever wants no more of it does not wait for it either.
    page.catch(() => {});
    return page;
  };
  let reading: Promise<WholePage> | undefined = read();
  while (reading !== undefined) {
    const { jobs: page, next }: WholePage = await reading;
    reading = next === undefined ? undefined : read(next);
    for (const [place, { job, history, logs }] of page.entries()) {
      if (place % A_TURN === A_TURN - 1) await turn(clock);
      yield { kind: "job", job: viewOf(job, scope), history: history.map((one) => attemptView(one, scope)), logs: logs.map(logView) };
    }
  }
}

function turn(clock: Clock): Promise<void> {
  return new Promise((resolve) => clock.soon(resolve));
}

function from<A>(after: A | undefined): { readonly limit: number; readonly after?: A } {
  return { limit: PAGE, ...(after === undefined ? {} : { after }) };
}

async function* pages<A, P extends { readonly next?: A }>(read: (after?: A) => Promise<P>): AsyncGenerator<P, void> {
  let after: A | undefined;
  do {
    const page: P = await read(after);
    yield page;
    after = page.next;
  } while (after !== undefined);
}
