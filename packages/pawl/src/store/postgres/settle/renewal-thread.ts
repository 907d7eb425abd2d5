import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import type pg from "pg";
import type { LeaseId } from "../../../core/jobs/id.js";
import type { RenewalLink } from "../drivers/driver.js";
import { PgliteClient } from "../drivers/pglite-client.js";
import { RENEW } from "./renew-statement.js";
import { RenewalTable } from "./renewal-table.js";
import type { FromThread, ThreadData } from "./renewer.js";

const { link, statement, worker, duration, every, memory } = workerData as ThreadData;
const table = new RenewalTable(memory);
/** When the leases that were renewed or lost are due again, by index. */
const next: ({ readonly lease: bigint; readonly at: number } | undefined)[] = [];
const TICK = Math.max(20, Math.min(500, every / 4));

const WRONG_PASSWORD = "28P01";

type RunRenewal = (values: unknown[]) => Promise<readonly { id: LeaseId }[]>;
const run: RunRenewal = link.kind === "pg" ? overPg(link) : overPort(link.port);

function now(): number {
  return performance.timeOrigin + performance.now();
}

/**
 * A connection made when first needed and replaced when it fails: what is due stays due until it works. The driver too
 * is loaded when it is needed: most leases end before.
 */
function overPg({ file, config, password }: Extract<RenewalLink, { kind: "pg" }>): RunRenewal {
  let client: pg.Client | undefined;
  return async (values) => {
    if (client === undefined) {
      const [{ clientWith }, { loadPg }] = await Promise.all([import("../drivers/pg-client.js"), import("../drivers/pg-module.js")]);
      const Client = clientWith(loadPg(file), password === undefined ? undefined : () => password);
      const next = new Client({
        application_name: "pawl renewal",
        ...config,
        connectionTimeoutMillis: 3_000,
        query_timeout: Math.max(1_000, every),
      });
      next.on("error", () => {
        if (client === next) client = undefined;
      });
      await next.connect().catch((error: unknown) => {
        // It may have been changed since this thread was started: the next one is given the new one.
        if (password !== undefined && (error as { code?: unknown }).code === WRONG_PASSWORD) process.exit(1);
        throw error;
      });
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

function overPort(port: MessagePort): RunRenewal {
  const client = new PgliteClient(port);
  return async (values) => (await client.ask({ kind: "query", text: statement.text, values })).rows as unknown as readonly { id: LeaseId }[];
}

async function renewDue(): Promise<void> {
  const at = now();
  const due = new Map<LeaseId, number>();
  for (let index = 0; index < table.used; index++) {
    const entry = table.at(index);
    if (entry === undefined || entry.until <= at) continue;
    const known = next[index];
    const dueAt = known?.lease === entry.lease ? known.at : entry.from + every;
    if (dueAt <= at) due.set(String(entry.lease) as LeaseId, index);
  }
  if (due.size === 0) return;
  const rows = await run([...RENEW.values({ now: null, worker, duration, leases: [...due.keys()] })]);
  const renewed = rows.map((row) => row.id);
  const kept = new Set(renewed);
  for (const [lease, index] of due) next[index] = { lease: BigInt(lease), at: kept.has(lease) ? at + every : Number.POSITIVE_INFINITY };
  const lost = [...due.keys()].filter((lease) => !kept.has(lease));
  tell({ renewed, at });
  if (lost.length > 0) tell({ lost, why: "the store no longer has it" });
}

function tell(message: FromThread): void {
  parentPort?.postMessage(message);
}

/** A failed renewal is simply still due at the next tick: the worker stops by itself if that takes too long. */
async function tick(): Promise<void> {
  await renewDue().catch((error: unknown) => tell({ trouble: error instanceof Error ? error.message : String(error) }));
  setTimeout(tick, TICK);
}
setTimeout(tick, TICK);
tell("up");
