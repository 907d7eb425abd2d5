import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import pg from "pg";
import type { LeaseId } from "../../core/id.js";
import { plainArray } from "./arrays.js";
import { PgliteClient } from "./drivers/pglite-client.js";
import type { FromThread, RenewalData, ToThread } from "./renewal.js";

/** One lease to keep: renewed each `every` ms until `until`. */
interface Held {
  next: number;
  until: number;
}

const { link, statement, worker, duration, every } = workerData as RenewalData;
const held = new Map<LeaseId, Held>();
const TICK = Math.max(20, Math.min(500, every / 4));

type Run = (values: unknown[]) => Promise<readonly { id: LeaseId }[]>;
const run: Run = link.kind === "pg" ? overPg(link.config) : overPort(link.port);

function now(): number {
  return performance.timeOrigin + performance.now();
}

/** A connection made when first needed and replaced when it fails: what is due stays due until it works. */
function overPg(config: Readonly<Record<string, unknown>>): Run {
  let client: pg.Client | undefined;
  return async (values) => {
    if (client === undefined) {
      const next = new pg.Client({
        application_name: "pawl renewal",
        ...config,
        connectionTimeoutMillis: 3_000,
        query_timeout: Math.max(1_000, every),
      });
      next.on("error", () => {
        if (client === next) client = undefined;
      });
      await next.connect();
      client = next;
    }
    const current = client;
    try {
      return (await current.query(statement.text, values)).rows as { id: LeaseId }[];
    } catch (error) {
      if (client === current) client = undefined;
      current.end().catch(() => {});
      throw error;
    }
  };
}

function overPort(port: MessagePort): Run {
  const client = new PgliteClient(port);
  return async (values) => (await client.ask({ kind: "query", text: statement.text, values })).rows as unknown as readonly { id: LeaseId }[];
}

parentPort?.on("message", (message: ToThread) => {
  if (message === "stop") process.exit(0);
  else if ("drop" in message) for (const lease of message.drop) held.delete(lease);
  else {
    const known = held.get(message.hold);
    if (known === undefined) held.set(message.hold, { next: message.from + every, until: message.until });
    else known.until = message.until;
  }
});

async function renewDue(): Promise<void> {
  const at = now();
  const due: LeaseId[] = [];
  for (const [lease, state] of held) {
    if (state.until <= at) held.delete(lease);
    else if (state.next <= at) due.push(lease);
  }
  if (due.length === 0) return;
  const rows = await run([null, worker, duration, plainArray(due)]);
  const renewed = rows.map((row) => row.id);
  const kept = new Set(renewed);
  const lost = due.filter((lease) => !kept.has(lease));
  for (const lease of renewed) {
    const state = held.get(lease);
    if (state !== undefined) state.next = at + every;
  }
  for (const lease of lost) held.delete(lease);
  tell({ renewed, at });
  if (lost.length > 0) tell({ lost, why: "the store no longer has it" });
}

function tell(message: FromThread): void {
  parentPort?.postMessage(message);
}

/** A failed renewal is simply still due at the next tick: the worker stops by itself if that takes too long. */
async function tick(): Promise<void> {
  await renewDue().catch(() => {});
  setTimeout(tick, TICK);
}
setTimeout(tick, TICK);
tell("up");
