import { expect, test } from "vitest";
import type { InstanceId, JobId, LeaseId } from "../../core/jobs/id.js";
import type { Settlement } from "../../store/port/settle/leases.js";
import { virtualClock } from "../../testing/clock.js";
import type { HttpTransport, ServiceCall } from "../transport/http-transport.js";
import { PullStore } from "./pull-store.js";

const worker = { name: "w", instance: "00000000-0000-4000-8000-00000000000a" as InstanceId };
const JOB = "0197a0c0-7d1e-7000-8000-000000000000" as JobId;
const leases = (count: number) => Array.from({ length: count }, (_, n) => String(n) as LeaseId);

type CallBody = Readonly<Partial<Record<"leases" | "outcomes" | "notes", readonly unknown[]>>>;

/** A store whose service answers so, and what it was asked. */
function pulling(answer: (verb: string, said: CallBody) => unknown) {
  const calls: (ServiceCall & { readonly verb: string; readonly said: CallBody })[] = [];
  const json = async (call: ServiceCall) => {
    const verb = call.path.replace(/^\/v1\/leases\/?/, "");
    const said = JSON.parse(call.body ?? "{}") as CallBody;
    calls.push({ ...call, verb, said });
    return answer(verb, said);
  };
  const transport = { json, clock: virtualClock(), url: new URL("http://service") } as unknown as HttpTransport;
  const pull = new PullStore(transport, () => worker);
  return { pull, store: pull.asStore(), calls };
}

function settlement(lease: string, output: unknown): Settlement {
  const lane = { queue: "default", priority: 5, tenant: "default", task: "t" } as const;
  const patch = { outcome: "succeeded", next: "succeeded", attempts: 1, crashes: 0, output: JSON.stringify(output) } as const;
  return { lease: lease as LeaseId, job: JOB, lane, patch, startedAt: 0, finishedAt: 1 };
}

test("more leases than the service takes at once are renewed and asked about in several calls", async () => {
  const { store, calls } = pulling((verb, { leases: told }) => (verb === "renew" ? { held: told } : { cancel: told?.slice(0, 1) }));
  expect((await store.leases.renew(worker, leases(2_500), 15_000)).held).toEqual(leases(2_500));
  expect(await store.leases.intents(worker, leases(1_001))).toEqual([
    { job: "0", intent: "cancel" },
    { job: "1000", intent: "cancel" },
  ]);
  expect(calls.map(({ verb, said }) => [verb, said.leases?.length])).toEqual([
    ["renew", 1_000],
    ["renew", 1_000],
    ["renew", 500],
    ["intents", 1_000],
    ["intents", 1],
  ]);
});

test("a renewal is tried once and not for long: who renews tries again by itself, as long as it is of use", async () => {
  const { store, calls } = pulling(() => ({ held: [] }));
  await store.leases.renew(worker, leases(1), 15_000);
  expect(calls).toMatchObject([{ verb: "renew", tries: 1, timeout: 5_000, pool: "work" }]);
});

test("settlements are sent in bodies that the service takes, counted in bytes", async () => {
  const { store, calls } = pulling((_, { outcomes }) => ({ results: outcomes?.map(() => "settled") }));
  // Three bytes each: few characters, many bytes.
  const settlements = Array.from({ length: 10 }, (_, n) => settlement(String(n), "€".repeat(300_000)));
  expect(await store.leases.settle(worker, settlements)).toEqual(new Array<string>(10).fill("settled"));
  expect(calls.flatMap(({ said }) => (said.outcomes as { lease: string }[]).map(({ lease }) => lease))).toEqual(leases(10));
  expect(Math.max(...calls.map(({ body = "" }) => Buffer.byteLength(body)))).toBeLessThan(4.5 * 1_048_576);
});

test("log lines are, too", async () => {
  const { store, calls } = pulling(() => undefined);
  const data = JSON.stringify("€".repeat(300_000));
  const entry = { lease: "1" as LeaseId, job: JOB, at: 0, level: "info", message: "large", data } as const;
  await store.records.log(worker, new Array<typeof entry>(10).fill(entry));
  expect(calls.flatMap(({ said }) => said.notes)).toHaveLength(10);
  expect(Math.max(...calls.map(({ body = "" }) => Buffer.byteLength(body)))).toBeLessThan(4.5 * 1_048_576);
});

const job = { id: JOB, task: "t", queue: "q", priority: 5, tenant: "x", attempt: 1, dueAt: "2026-11-15T12:00:00.000Z", crashes: 0 };
const claimed = (lease: string) => ({ leases: [{ lease, now: "2026-11-15T12:00:01.000Z", beganAfter: 0, suspect: false, jobs: [job] }] });

test("times of the answer to a claim are instants", async () => {
  const { pull } = pulling(() => claimed("1"));
  expect(await pull.claim({}, {})).toMatchObject([
    { claimed: { now: Date.UTC(2026, 10, 15, 12, 0, 1), jobs: [{ dueAt: Date.UTC(2026, 10, 15, 12) }] } },
  ]);
});

test("a late settlement does not take its job's new lease away", async () => {
  let next = 0;
  const { pull, store, calls } = pulling((verb) => (verb === "claim" ? claimed(String(++next)) : { results: ["stale"], found: false }));
  await pull.claim({}, {});
  await pull.claim({}, {});
  await store.leases.settle(worker, [settlement("1", null)]);
  await store.records.recall(JOB, "charge");
  expect(calls.at(-1)).toMatchObject({ verb: "recall", said: { lease: "2", job: JOB } });
});

test("a job of a lost lease is not known any more", async () => {
  const { pull, store, calls } = pulling((verb) => (verb === "claim" ? claimed("1") : { held: [] }));
  await pull.claim({}, {});
  await store.leases.renew(worker, leases(2), 15_000);
  await expect(store.records.recall(JOB, "charge")).rejects.toMatchObject({ code: "lease_lost" });
  expect(calls.map(({ verb }) => verb)).toEqual(["claim", "renew"]);
});
