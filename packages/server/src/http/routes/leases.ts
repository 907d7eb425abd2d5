import {
  type ClaimAsk,
  checkEnding,
  type HandedLease,
  type Holding,
  type Host,
  type HostedTask,
  isPawlError,
  milliseconds,
  pawlError,
  permit,
  type ToldEnding,
  type ToldOutcome,
} from "pawl";
import { claimAnswer } from "../../pull/answer.js";
import type { Principal } from "../access.js";
import { claim, Ending, note, notices, recall, record, renew, retire, settle } from "../contract/leases.js";
import type { Problem } from "../contract/problem.js";
import type { BodyOf } from "../contract/route.js";
import { isAllowedStill, on, Raw } from "../handler.js";
import { problemOf } from "../problem.js";
import { refuseReserved } from "../reach.js";
import { checker } from "../validate.js";

/** ms that a recorded effect is remembered, unless it says otherwise */
const RECORD_TTL = 30 * 86_400_000;

export const leases = [
  on(claim, (call) => {
    const { body, principal, parts, signal } = call;
    const arrivedAt = performance.now();
    checkReach(principal, body);
    return parts.sessions.claiming(principal, body.worker, async (host) => {
      const leases = await parts.claims.hold(principal, signal, async (ended) => {
        const claimed = await host.claim(askOf(body, ended));
        // What was claimed at the last moment is the worker's all the same.
        if (claimed.length === 0 && isPawlError(ended.reason, "too_many_requests")) throw ended.reason;
        return claimed;
      });
      if (await isAllowedStill(arrivedAt, call)) return new Raw("application/json; charset=utf-8", claimAnswer(leases, arrivedAt));
      await giveBack(host, leases);
      throw pawlError("unauthenticated");
    });
  }),
  on(renew, ({ body, principal, parts }) => parts.sessions.with(principal, body.worker, (host) => host.renew(body.leases))),
  on(notices, ({ body, principal, parts }) =>
    parts.sessions.with(principal, body.worker, async (host) => ({ cancel: await host.cancelled(body.leases) })),
  ),
  on(settle, ({ body, principal, parts }) => {
    const told = body.endings.map(endingOrProblem);
    const endings = told.filter((one): one is ToldEnding => "told" in one);
    const refusals = told.filter((one): one is Problem => !("told" in one));
    return parts.sessions.with(principal, body.worker, async (host) => {
      const settled = endings.length === 0 ? [] : await host.settle(endings);
      const next = settled.values();
      const answers = told.map((one) => ("told" in one ? (next.next().value ?? "stale") : "refused"));
      return { answers, ...(refusals.length === 0 ? {} : { refusals }) };
    });
  }),
  on(note, ({ body, principal, parts }) =>
    parts.sessions.with(principal, body.worker, async (host) => {
      await host.note(body.notes);
      return undefined;
    }),
  ),
  on(recall, ({ body, principal, parts }) =>
    parts.sessions.with(principal, body.worker, async (host) => {
      const value = await host.recall(body, body.name);
      return value === undefined ? { found: false } : { found: true, value: JSON.parse(value) as unknown };
    }),
  ),
  on(record, ({ body, principal, parts }) =>
    parts.sessions.with(principal, body.worker, async (host) => {
      const ttl = body.ttl === undefined ? RECORD_TTL : milliseconds(body.ttl);
      return { value: JSON.parse(await host.record(body, body.name, JSON.stringify(body.value ?? null), ttl)) as unknown };
    }),
  ),
  on(retire, async ({ body, principal, parts }) => {
    await parts.sessions.retire(principal, body.worker);
    return undefined;
  }),
];

/** What a worker asks to run must be its credential's, every task in every queue: then whatever it is given is. */
function checkReach(principal: Principal, { tasks, queues }: BodyOf<typeof claim>): void {
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

async function giveBack(host: Host, leases: readonly HandedLease[]): Promise<void> {
  const endings = leases.flatMap(({ lease, jobs }) => jobs.map(({ id }): ToldEnding => ({ lease, job: id, told: { outcome: "released" } })));
  if (endings.length > 0) await host.settle(endings);
}

function askOf({ worker: _, holding, tasks, ...asked }: BodyOf<typeof claim>, signal: AbortSignal): ClaimAsk {
  return {
    ...(asked as Omit<ClaimAsk, "tasks" | "holding">),
    tasks: tasks as readonly HostedTask[],
    ...(holding === undefined
      ? {}
      : {
          holding: holding.map(({ task, queue, priority, tenant, count }) => ({
            lane: { queue, band: priority, tenant, task } as Holding["lane"],
            count,
          })),
        }),
    signal,
  };
}

const checkShape = checker(Ending);

/** An ending that is malformed is refused by itself: those beside it are of other jobs, and have ended. */
function endingOrProblem(given: BodyOf<typeof settle>["endings"][number], place: number): ToldEnding | Problem {
  const where = `/endings/${place}`;
  try {
    checkShape(given, where);
    const ending = endingOf(given, place);
    checkEnding(ending);
    return ending;
  } catch (error) {
    const { pointer = "", ...problem } = problemOf(error);
    return { ...problem, pointer: pointer.startsWith(where) ? pointer : `${where}${pointer}` };
  }
}

function endingOf({ lease, job, took, notes, retry, atMostOnce, ...told }: BodyOf<typeof settle>["endings"][number], place: number): ToldEnding {
  if (told.outcome === "failed" && told.failure === undefined) throw missing(place, "failure", "must say what went wrong");
  if (told.outcome === "snoozed" && told.delay === undefined) throw missing(place, "delay", "must say when to try again");
  const run = { ...(retry === undefined ? {} : { retry }), ...(atMostOnce === undefined ? {} : { atMostOnce }) };
  return {
    lease,
    job,
    told: told as unknown as ToldOutcome,
    run,
    ...(took === undefined ? {} : { took }),
    ...(notes === undefined ? {} : { notes }),
  };
}

function missing(place: number, field: string, reason: string) {
  const pointer = `/endings/${place}/${field}`;
  return pawlError("field_invalid", { field: pointer, reason, pointer });
}
