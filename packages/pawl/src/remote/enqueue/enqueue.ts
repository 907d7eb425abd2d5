import { BOUNDS } from "../../core/values/bounds.js";
import { DEFAULTS } from "../../core/values/defaults.js";
import { isPawlError, pawlError } from "../../core/values/error.js";
import { keepAliveFor } from "../../runtime/process/keep-alive.js";
import { checkDuration, checkFunction, checkObject, invalid } from "../../scheduler/check.js";
import { forEachInput } from "../../scheduler/enqueue/chunks.js";
import { encodeInput } from "../../scheduler/enqueue/encode-input.js";
import { checkSharedOptions, type StoredJob } from "../../scheduler/enqueue/enqueuer.js";
import { checkIdempotencyKey, idempotencyKeyOfChunk, withKeyOfWholeCall } from "../../scheduler/enqueue/idempotency-key.js";
import type { StoredItems } from "../../scheduler/enqueue/item-enqueuer.js";
import type { TaskLike } from "../../scheduler/enqueue/job-plan.js";
import type {
  EnqueueAllOptions,
  EnqueueManyOptions,
  EnqueueOptions,
  EnqueueStreamOptions,
  QueueDefaults,
  StreamSummary,
} from "../../scheduler/options.js";
import type { HttpTransport } from "../transport/http-transport.js";
import { jobFields, jobFieldsOfInput } from "../transport/job-fields.js";
import { revive } from "../transport/problem.js";
import { askBatch, type BatchItem, type RemoteBatchAnswer, sendBatch } from "./batch.js";
import { bodyOf, type EncodedJob, jobText, unknownIf } from "./encoded-job.js";

type InputSource = Iterable<unknown> | AsyncIterable<unknown>;

/** bytes of a request, below what the service takes */
const MAX_BYTES = 4 * 1_048_576;
const MAX_IN_FLIGHT = 2;

interface UnsentJob {
  readonly body: string;
  readonly task: string;
  readonly key: string | undefined;
  readonly idempotencyKey: string | undefined;
  readonly resolve: (stored: StoredJob) => void;
  readonly reject: (error: unknown) => void;
}

/** Jobs to the service: single ones of one turn of the event loop together, many in chunks, as the store itself is given them. */
export class RemoteEnqueuer {
  readonly #transport: HttpTransport;
  #unsent: UnsentJob[] = [];
  #inFlight = 0;
  #sendScheduled = false;
  #idle: (() => void)[] = [];

  constructor(
    transport: HttpTransport,
    private readonly queues: Readonly<Record<string, QueueDefaults>>,
  ) {
    this.#transport = transport;
  }

  async one(task: TaskLike, tenant: string | undefined, input: unknown, options: EnqueueOptions = {}): Promise<StoredJob> {
    const fields = jobFieldsOfInput(task, this.queues, tenant, input, options);
    const text = encodeInput(task.name, task.schema, input);
    const body = jobText(task.name, typeof text === "string" ? text : await text, fields);
    return new Promise((resolve, reject) => {
      const unique = fields.unique as EnqueueOptions["unique"];
      const key = typeof unique === "object" ? unique.key : unique;
      const { idempotencyKey } = options;
      this.#unsent.push({ body, task: task.name, key, idempotencyKey, resolve, reject });
      this.#scheduleSend();
    });
  }

  /** Handles in order; the error of a chunk says how many jobs were stored. */
  async many(
    task: TaskLike,
    tenant: string | undefined,
    inputs: readonly unknown[],
    options?: EnqueueManyOptions<unknown>,
  ): Promise<readonly StoredJob[]> {
    if (!Array.isArray(inputs)) throw invalid("inputs", "enqueueMany takes an array; enqueueStream takes any iterable");
    const chunks: (readonly StoredJob[])[] = [];
    await this.#inChunks(
      task,
      tenant,
      inputs,
      options,
      (body) => this.#batch(body, options?.idempotencyKey !== undefined),
      (stored, chunk) => {
        chunks[chunk] = stored;
      },
    );
    return chunks.flat();
  }

  async stream(task: TaskLike, tenant: string | undefined, inputs: InputSource, options: EnqueueStreamOptions<unknown> = {}): Promise<StreamSummary> {
    const { onChunk, wait = DEFAULTS.ingest.patience, ...shared } = checkObject("options", options) as EnqueueStreamOptions<unknown>;
    if (onChunk !== undefined) checkFunction("onChunk", onChunk);
    const longest = checkDuration("wait", wait);
    const summary = { count: 0, created: 0, existing: 0, rejected: 0, dependencyUnknown: 0, idempotencyKeyReused: 0 };
    await this.#inChunks(
      task,
      tenant,
      inputs,
      shared,
      (body) => this.#retryWhileLimited(() => this.#batch(body, shared.idempotencyKey !== undefined), longest),
      (stored) => {
        summary.count += stored.length;
        for (const { enqueued } of stored) summary[enqueued]++;
        onChunk?.({ ...summary });
      },
    );
    return summary;
  }

  batch(tenant: string | undefined, jobs: readonly BatchItem[], options: EnqueueAllOptions): Promise<StoredItems> {
    return sendBatch(this.#transport, jobs, options, (task, input, own) => jobFieldsOfInput(task, this.queues, tenant, input, own));
  }

  /** Resolves when everything is answered. */
  async idle(): Promise<void> {
    if (this.#unsent.length > 0 || this.#inFlight > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  async #inChunks(
    task: TaskLike,
    tenant: string | undefined,
    inputs: InputSource,
    options: EnqueueManyOptions<unknown> | undefined,
    send: (body: string) => Promise<readonly StoredJob[]>,
    done: (stored: readonly StoredJob[], chunk: number) => void,
  ): Promise<void> {
    // No inputs at all would ask the service nothing.
    this.#transport.checkOpen();
    const { shared, idempotencyKey, encodeJob } = this.#encoder(task, tenant, options);
    const inFlight = new Set<Promise<void>>();
    let failure: { readonly error: unknown } | undefined;
    let chunk: EncodedJob[] = [];
    let size = 0;
    let sent = 0;
    let created = 0;
    const sendChunk = async () => {
      const position = sent++;
      const once = idempotencyKey === undefined ? undefined : idempotencyKeyOfChunk(idempotencyKey, position);
      const body = bodyOf(task.name, shared, chunk, once);
      const count = chunk.length;
      chunk = [];
      size = 0;
      const sending: Promise<void> = send(body)
        .then(
          (stored) => {
            created += stored.filter(({ enqueued }) => enqueued === "created").length;
            done(stored, position);
          },
          (error: unknown) => {
            failure ??= { error: unknownIf(withKeyOfWholeCall(error, idempotencyKey), { count, idempotencyKey }) };
            if (isPawlError(error) && typeof error.details.stored === "number") created += error.details.stored;
          },
        )
        .finally(() => inFlight.delete(sending));
      inFlight.add(sending);
      // A call that is refused with its first chunk stores nothing.
      if (inFlight.size >= MAX_IN_FLIGHT || (idempotencyKey !== undefined && position === 0)) await Promise.race(inFlight);
      if (failure !== undefined) throw failure.error;
    };
    const add = (encodedJob: EncodedJob): Promise<void> | undefined => {
      chunk.push(encodedJob);
      size += Buffer.byteLength(encodedJob.text);
      return chunk.length >= BOUNDS.enqueueAll || size >= MAX_BYTES ? sendChunk() : undefined;
    };
    let index = 0;
    try {
      await forEachInput(inputs, (input) => {
        const encodedJob = encodeJob(input, index++);
        return encodedJob instanceof Promise ? encodedJob.then(add) : add(encodedJob);
      });
      if (chunk.length > 0) await sendChunk();
      await Promise.all(inFlight);
      if (failure !== undefined) throw (failure as { readonly error: unknown }).error;
    } catch (error) {
      await Promise.all(inFlight);
      throw isPawlError(error) ? pawlError(error.code, { ...error.details, stored: created }, error) : error;
    }
  }

  /** Resolves what they share once; those with limits or options of their own say theirs. */
  #encoder(task: TaskLike, tenant: string | undefined, options: EnqueueManyOptions<unknown> = {}) {
    const { each: ownOf, idempotencyKey, ...rest } = checkObject("options", options) as EnqueueManyOptions<unknown>;
    if (ownOf !== undefined) checkFunction("each", ownOf);
    if (idempotencyKey !== undefined) checkIdempotencyKey(idempotencyKey);
    checkSharedOptions(rest);
    const shared = jobFields(task, this.queues, tenant, rest);
    const byInput = task.options.limits !== undefined || task.options.unique !== undefined;
    const encodeJob = (input: unknown, index: number): EncodedJob | Promise<EncodedJob> => {
      const own: EnqueueOptions | undefined = ownOf?.(input, index);
      if (own !== undefined && (checkObject("what each answers", own) as EnqueueOptions).tx !== undefined)
        throw invalid("tx", "all of them share it: give it beside each, not inside");
      const plain = own === undefined && !byInput;
      const fields = plain ? undefined : jobFieldsOfInput(task, this.queues, tenant, input, { ...rest, ...own });
      const text = encodeInput(task.name, task.schema, input);
      const encodedJob = (encoded: string): EncodedJob => ({ plain, text: fields === undefined ? encoded : jobText(task.name, encoded, fields) });
      return typeof text === "string" ? encodedJob(text) : text.then(encodedJob);
    };
    return { shared, idempotencyKey, encodeJob };
  }

  async #batch(body: string, once: boolean): Promise<readonly StoredJob[]> {
    const { results: answers, repeated } = await askBatch(this.#transport, body);
    return answers.map((answer) => {
      if ("error" in answer) throw revive(answer.error);
      return once && repeated && answer.enqueued === "created" ? { ...answer, enqueued: "existing" } : answer;
    });
  }

  /** While an ingest limit lets nothing in, it waits as long as it is told to. */
  async #retryWhileLimited<T>(send: () => Promise<T>, patience: number): Promise<T> {
    const { clock } = this.#transport;
    const end = clock.monotonic() + patience;
    for (;;) {
      try {
        return await send();
      } catch (error) {
        const wait = isPawlError(error, "ingest_limited") && typeof error.details.retryAfter === "number" ? error.details.retryAfter : undefined;
        if (wait === undefined || clock.monotonic() + wait > end) throw error;
        await keepAliveFor(clock, wait);
      }
    }
  }

  #scheduleSend(): void {
    if (this.#sendScheduled || this.#inFlight >= MAX_IN_FLIGHT) return;
    this.#sendScheduled = true;
    this.#transport.clock.soon(() => {
      this.#sendScheduled = false;
      while (this.#unsent.length > 0 && this.#inFlight < MAX_IN_FLIGHT) void this.#send();
    });
  }

  async #send(): Promise<void> {
    let count = 0;
    for (let size = 0; count < this.#unsent.length && count < BOUNDS.enqueueAll; count++) {
      size += Buffer.byteLength((this.#unsent[count] as UnsentJob).body);
      if (count > 0 && size > MAX_BYTES) break;
    }
    const batch = this.#unsent.splice(0, count);
    this.#inFlight++;
    try {
      if (batch.length === 1) {
        const [only] = batch as [UnsentJob];
        only.resolve((await this.#transport.json({ method: "POST", path: "/v1/jobs", body: only.body })) as StoredJob);
      } else {
        const body = `{"jobs":[${batch.map((unsentJob) => unsentJob.body).join(",")}]}`;
        const { results: answers } = await askBatch(this.#transport, body);
        batch.forEach(({ task, key, resolve, reject }, position) => {
          const answer = answers[position] as RemoteBatchAnswer;
          if ("error" in answer) reject(revive(answer.error));
          // Among many it is an answer; to who enqueued one, an error.
          else if (answer.enqueued === "rejected") reject(pawlError("unique_key_taken", { key: String(key), task, job: answer.id }));
          else resolve(answer);
        });
      }
    } catch (error) {
      for (const { key, idempotencyKey, reject } of batch) reject(unknownIf(error, { count: 1, idempotencyKey, key }));
    } finally {
      this.#inFlight--;
      if (this.#unsent.length > 0) this.#scheduleSend();
      else if (this.#inFlight === 0) for (const resolve of this.#idle.splice(0)) resolve();
    }
  }
}
