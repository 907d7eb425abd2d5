import type { Enqueued } from "../../../core/jobs/job.js";
import { DEFAULTS } from "../../../core/values/defaults.js";
import type { BatchRequest, BatchStore, EnqueuedBatch, KnownBatch } from "../../port/enqueue/batches.js";
import type { Tables } from "../state.js";
import { enqueue } from "./enqueue.js";

export interface MemoryBatch {
  readonly digest: string;
  readonly note: string | undefined;
  readonly answers: readonly Enqueued[];
  readonly until: number;
}

export function memoryBatches(tables: Tables): BatchStore {
  return {
    async enqueue(request, jobs) {
      return tables.step((): EnqueuedBatch => {
        const existing = find(tables, request);
        if (existing !== undefined) return existing;
        const answers = enqueue(tables, jobs);
        const { digest, note } = request;
        tables.batches.set(keyOf(request), { digest, note, answers, until: tables.now + DEFAULTS.keep.idempotencyKey });
        return { kind: "stored", answers };
      });
    },
    get: (request) => tables.step(() => find(tables, request)),
  };
}

function find(tables: Tables, request: BatchRequest): KnownBatch | undefined {
  const row = tables.batches.get(keyOf(request));
  if (row === undefined || row.until <= tables.now) return undefined;
  if (row.digest !== request.digest) return { kind: "different" };
  return { kind: "repeated", answers: row.answers, ...(row.note === undefined ? {} : { note: row.note }) };
}

function keyOf({ tenant, id }: BatchRequest): string {
  return `${tenant}\u0001${id}`;
}

export function forgetBatches(tables: Tables): number {
  let forgotten = 0;
  for (const [key, { until }] of tables.batches) if (until <= tables.now && tables.batches.delete(key)) forgotten++;
  return forgotten;
}
