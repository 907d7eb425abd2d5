import {
  type ClaimAsk,
  type HandedLease,
  type Holding,
  type Host,
  type HostedTask,
  milliseconds,
  pawlError,
  permit,
  type ToldEnding,
  type ToldOutcome,
} from "pawl";
import { claimAnswer } from "../../pull/answer.js";
import type { Principal } from "../access.js";
import { claim, note, notices, recall, record, renew, retire, settle } from "../contract/leases.js";
import type { BodyOf } from "../contract/route.js";
import { isAllowedStill, on, Raw } from "../handler.js";
import { refuseReserved } from "../reach.js";

/** ms that a recorded effect is remembered, unless it says otherwise */
const RECORD_TTL = 30 * 86_400_000;

export const leases = [
  on(claim, (call) => {
    const { body, principal, parts, signal } = call;
    const arrivedAt = performance.now();
    checkReach(principal, body);
    return parts.sessions.claiming(principal, body.worker, async (host) => {
      const leases = await host.claim(askOf(body, signal));
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
    const endings = body.endings.map(endingOf);
    return parts.sessions.with(principal, body.worker, async (host) => ({ answers: await host.settle(endings) }));
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

function endingOf({ lease, job, took, notes, ...told }: BodyOf<typeof settle>["endings"][number], place: number): ToldEnding {
  if (told.outcome === "failed" && told.failure === undefined) throw missing(place, "failure", "must say what went wrong");
  if (told.outcome === "snoozed" && told.delay === undefined) throw missing(place, "delay", "must say when to try again");
  return { lease, job, told: told as unknown as ToldOutcome, ...(took === undefined ? {} : { took }), ...(notes === undefined ? {} : { notes }) };
}

function missing(place: number, field: string, reason: string) {
  const pointer = `/endings/${place}/${field}`;
  return pawlError("field_invalid", { field: pointer, reason, pointer });
}
