import { isPawlError } from "pawl";
import {
  type AttemptOutcome,
  checkAttemptOutcome,
  type HeldJobs,
  type Host,
  type HostedTask,
  milliseconds,
  pawlError,
  permit,
  type RemoteClaimRequest,
  type RemoteLease,
  type ReportedOutcome,
} from "pawl/service";
import { claimAnswer } from "../../pull/claim-answer.js";
import { refuseReserved } from "../access/authorize.js";
import type { Principal } from "../access/principal.js";
import { claim, intents, OutcomeBody, recall, record, renew, report, retire, settle } from "../contract/jobs/leases.js";
import type { ProblemDetails } from "../contract/problem.js";
import type { BodyOf } from "../contract/route.js";
import { isStillAllowed, on, RawAnswer } from "../handler.js";
import { problemOf } from "../problem.js";
import { checker } from "../request/validate.js";

/** ms that a recorded effect is remembered, unless it says otherwise */
const RECORD_TTL_MS = 30 * 86_400_000;

export const leases = [
  on(claim, (call) => {
    const { body, principal, deps, signal } = call;
    const arrivedAt = performance.now();
    authorizeClaim(principal, body);
    return deps.sessions.claiming(principal, body.worker, async (host) => {
      const leases = await deps.claims.keepOpen(principal, signal, async (ended) => {
        const claimed = await host.claim(claimRequest(body, ended));
        // What was claimed at the last moment is the worker's all the same.
        if (claimed.length === 0 && isPawlError(ended.reason, "too_many_requests")) throw ended.reason;
        return claimed;
      });
      if (await isStillAllowed(arrivedAt, call)) return new RawAnswer("application/json; charset=utf-8", claimAnswer(leases, arrivedAt));
      await releaseLeases(host, leases);
      throw pawlError("unauthenticated");
    });
  }),
  on(renew, ({ body, principal, deps }) => deps.sessions.with(principal, body.worker, (host) => host.renew(body.leases))),
  on(intents, ({ body, principal, deps }) =>
    deps.sessions.with(principal, body.worker, async (host) => ({ cancel: await host.cancelled(body.leases) })),
  ),
  on(settle, ({ body, principal, deps }) => {
    const outcomesOrProblems = body.outcomes.map(outcomeOrProblem);
    const outcomes = outcomesOrProblems.filter((one): one is AttemptOutcome => "reportedOutcome" in one);
    const refusals = outcomesOrProblems.filter((one): one is ProblemDetails => !("reportedOutcome" in one));
    return deps.sessions.with(principal, body.worker, async (host) => {
      const settled = outcomes.length === 0 ? [] : await host.settle(outcomes);
      const next = settled.values();
      const results = outcomesOrProblems.map((one) => ("reportedOutcome" in one ? (next.next().value ?? "stale") : "refused"));
      return { results, ...(refusals.length === 0 ? {} : { refusals }) };
    });
  }),
  on(report, ({ body, principal, deps }) =>
    deps.sessions.with(principal, body.worker, async (host) => {
      await host.note(body.notes);
      return undefined;
    }),
  ),
  on(recall, ({ body, principal, deps }) =>
    deps.sessions.with(principal, body.worker, async (host) => {
      const value = await host.recall(body, body.name);
      return value === undefined ? { found: false } : { found: true, value: JSON.parse(value) as unknown };
    }),
  ),
  on(record, ({ body, principal, deps }) =>
    deps.sessions.with(principal, body.worker, async (host) => {
      const ttl = body.ttl === undefined ? RECORD_TTL_MS : milliseconds(body.ttl);
      return { value: JSON.parse(await host.record(body, body.name, JSON.stringify(body.value ?? null), ttl)) as unknown };
    }),
  ),
  on(retire, async ({ body, principal, deps }) => {
    await deps.sessions.retire(principal, body.worker);
    return undefined;
  }),
];

/** What a worker asks to run must be its credential's, every task in every queue: then whatever it is given is. */
function authorizeClaim(principal: Principal, { tasks, queues }: BodyOf<typeof claim>): void {
  for (const { name: task } of tasks) {
    refuseReserved(task);
    for (const queue of queues ?? [undefined]) {
      const permission = permit(principal, "leases.write", { task, ...(queue === undefined ? {} : { queue }) });
      if (permission.allowed) continue;
      const reason = permission.why === "queue" && queue === undefined ? "its queues must be named" : `its ${permission.why} is not one of its own`;
      throw pawlError("forbidden", { action: claim.id, reason });
    }
  }
}

async function releaseLeases(host: Host, leases: readonly RemoteLease[]): Promise<void> {
  const outcomes = leases.flatMap(({ lease, jobs }) =>
    jobs.map(({ id }): AttemptOutcome => ({ lease, job: id, reportedOutcome: { outcome: "released" } })),
  );
  if (outcomes.length > 0) await host.settle(outcomes);
}

function claimRequest({ worker: _, heldJobs, tasks, ...rest }: BodyOf<typeof claim>, signal: AbortSignal): RemoteClaimRequest {
  return {
    ...(rest as Omit<RemoteClaimRequest, "tasks" | "heldJobs">),
    tasks: tasks as readonly HostedTask[],
    ...(heldJobs === undefined
      ? {}
      : {
          heldJobs: heldJobs.map(({ task, queue, priority, tenant, count }) => ({
            lane: { queue, priority, tenant, task } as HeldJobs["lane"],
            count,
          })),
        }),
    signal,
  };
}

const checkShape = checker(OutcomeBody);

/** An ending that is malformed is refused by itself: those beside it are of other jobs, and have ended. */
function outcomeOrProblem(value: BodyOf<typeof settle>["outcomes"][number], index: number): AttemptOutcome | ProblemDetails {
  const where = `/outcomes/${index}`;
  try {
    checkShape(value, where);
    const outcome = outcomeOf(value, index);
    checkAttemptOutcome(outcome);
    return outcome;
  } catch (error) {
    const { pointer = "", ...problem } = problemOf(error);
    return { ...problem, pointer: pointer.startsWith(where) ? pointer : `${where}${pointer}` };
  }
}

function outcomeOf(
  { lease, job, duration, notes, retry, atMostOnce, ...reported }: BodyOf<typeof settle>["outcomes"][number],
  index: number,
): AttemptOutcome {
  if (reported.outcome === "failed" && reported.failure === undefined) throw missing(index, "failure", "must say what went wrong");
  if (reported.outcome === "snoozed" && reported.delay === undefined) throw missing(index, "delay", "must say when to try again");
  const run = { ...(retry === undefined ? {} : { retry }), ...(atMostOnce === undefined ? {} : { atMostOnce }) };
  return {
    lease,
    job,
    reportedOutcome: reported as unknown as ReportedOutcome,
    taskOptions: run,
    ...(duration === undefined ? {} : { duration }),
    ...(notes === undefined ? {} : { notes }),
  };
}

function missing(index: number, field: string, reason: string) {
  const pointer = `/outcomes/${index}/${field}`;
  return pawlError("field_invalid", { field: pointer, reason, pointer });
}
