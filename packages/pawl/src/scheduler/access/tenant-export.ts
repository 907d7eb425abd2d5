import type { JobId } from "../../core/jobs/id.js";
import type { TenantPolicy } from "../../core/sharing/policy.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { JobStore, WholePage } from "../../store/port/jobs/jobs.js";
import { type AttemptView, attemptView, type JobView, jobView, type LogView, logView } from "../jobs/view.js";
import type { BreakersOperator, BreakerView } from "../limits/breakers.js";
import type { LimitsOperator, LimitView } from "../limits/limits-view.js";
import type { Scheduler, TenantView } from "../scheduler.js";
import type { ScheduleView, TickView } from "../schedules/schedule-view.js";
import type { ApiKeys, ApiKeyView } from "./api-keys.js";
import type { Audit, AuditView } from "./audit.js";
import type { TargetView } from "./targets.js";

/** One line of an export. The first is a `tenant`, the last an `end`: without that one it was cut off. */
export type ExportEntry =
  | { readonly kind: "tenant"; readonly format: 1; readonly tenant: string; readonly paused: boolean; readonly policy: TenantPolicy }
  | { readonly kind: "schedule"; readonly schedule: ScheduleView; readonly ticks: readonly TickView[] }
  | { readonly kind: "target"; readonly target: TargetView }
  | { readonly kind: "limit"; readonly limit: LimitView }
  | { readonly kind: "breaker"; readonly breaker: BreakerView }
  | { readonly kind: "key"; readonly key: ApiKeyView }
  | { readonly kind: "audit"; readonly entry: AuditView }
  | { readonly kind: "job"; readonly job: JobView; readonly history: readonly AttemptView[]; readonly logs: readonly LogView[] }
  | { readonly kind: "end"; readonly entries: number };

/** What an export reads: each of them sees this tenant only, or is asked for it. */
export interface ExportDeps {
  readonly scheduler: Scheduler;
  readonly jobs: Pick<JobStore, "whole">;
  readonly clock: Clock;
  readonly limits: LimitsOperator;
  readonly breakers: BreakersOperator;
  readonly keys: ApiKeys;
  readonly audit: Audit;
  readonly tenant: () => Promise<TenantView>;
}

const PAGE = { limit: 200 };
/** ticks of a schedule that are told, the newest ones */
const MAX_TICKS_PER_SCHEDULE = 1_000;
const JOBS_PAGE = { limit: 500, bytes: 4 * 1_048_576 };
/** jobs that are told in one turn of the event loop: others want theirs in between */
const JOBS_PER_TURN = 25;

/** Everything that is held of a tenant, two pages in memory at a time. What comes in meanwhile may be in it or not. */
export async function* exportTenant(name: string, deps: ExportDeps): AsyncGenerator<ExportEntry, void> {
  let entries = 0;
  for await (const entry of exportEntries(name, deps)) {
    entries++;
    yield entry;
  }
  yield { kind: "end", entries };
}

async function* exportEntries(name: string, deps: ExportDeps): AsyncGenerator<ExportEntry, void> {
  const { scheduler, limits, breakers, keys, audit, tenant } = deps;
  const { paused, policy } = await tenant();
  yield { kind: "tenant", format: 1, tenant: name, paused, policy };
  const { schedules, targets } = scheduler;
  for await (const schedule of schedules.list({}, PAGE)) {
    const ticks = await schedules.ticks(schedule, { limit: MAX_TICKS_PER_SCHEDULE });
    yield { kind: "schedule", schedule, ticks: ticks.items };
  }
  for await (const target of targets.list({}, PAGE)) yield { kind: "target", target };
  for await (const limit of limits.list({ tenant: name }, PAGE)) yield { kind: "limit", limit };
  for await (const breaker of breakers.list({ tenant: name }, PAGE)) yield { kind: "breaker", breaker };
  for await (const key of keys.list({}, PAGE)) yield { kind: "key", key };
  for await (const entry of audit.list({ tenant: name }, PAGE)) yield { kind: "audit", entry };
  yield* jobsOf(name, deps);
}

/** The next page is read while one is told. Any trouble ends the export: what it left out would look as if it were not there. */
async function* jobsOf(tenant: string, { jobs, clock }: ExportDeps): AsyncGenerator<ExportEntry, void> {
  const scope = { tenant };
  const read = (after?: JobId) => {
    const page = jobs.whole(scope, { ...JOBS_PAGE, ...(after === undefined ? {} : { after }) });
    // Whoever wants no more of it does not wait for it either.
    page.catch(() => {});
    return page;
  };
  let reading: Promise<WholePage> | undefined = read();
  while (reading !== undefined) {
    const { jobs: page, next }: WholePage = await reading;
    reading = next === undefined ? undefined : read(next);
    for (const [index, { job, history, logs }] of page.entries()) {
      if (index % JOBS_PER_TURN === JOBS_PER_TURN - 1) await nextTurn(clock);
      yield { kind: "job", job: jobView(job, scope), history: history.map((one) => attemptView(one, scope)), logs: logs.map(logView) };
    }
  }
}

function nextTurn(clock: Clock): Promise<void> {
  return new Promise((resolve) => clock.soon(resolve));
}
