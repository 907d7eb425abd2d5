import { BOUNDS } from "../core/bounds.js";
import { DEFAULTS } from "../core/defaults.js";
import { isPawlError, pawlError } from "../core/error.js";
import { restFor } from "../runtime/alive.js";
import type { StoredBatch } from "../scheduler/batch.js";
import { checkDuration, checkFunction, checkObject, invalid } from "../scheduler/check.js";
import { each } from "../scheduler/chunks.js";
import { checkShared, type Stored } from "../scheduler/enqueuer.js";
import { encodeInput } from "../scheduler/input.js";
import { checkRequest, chunkRequest, ofWholeCall } from "../scheduler/once.js";
import type { BatchOptions, EnqueueOptions, ManyOptions, QueueDefaults, StreamOptions, StreamSummary } from "../scheduler/options.js";
import type { TaskLike } from "../scheduler/plan.js";
import { type Answer, askBatch, type BatchItem, sendBatch } from "./batch.js";
import { toldOptions, wireOptions } from "./options.js";
import { bodyOf, jobText, type Packed, unknownIf } from "./packed.js";
import { revive } from "./problem.js";
import type { Wire } from "./wire.js";

type Inputs = Iterable<unknown> | AsyncIterable<unknown>;

/** bytes of a request, below what the service takes */
const MOST_BYTES = 4 * 1_048_576;
const AT_ONCE = 2;

interface Waiting {
  readonly body: string;
  readonly task: string;
  readonly key: string | undefined;
  readonly request: string | undefined;
  readonly resolve: (stored: Stored) => void;
  readonly reject: (error: unknown) => void;
}

/** Jobs to the service: single ones of one turn of the event loop together, many in chunks, as the store itself is given them. */
export class RemoteEnqueuer {
  readonly #wire: Wire;
  #waiting: Waiting[] = [];
  #flying = 0;
  #planned = false;
  #idle: (() => void)[] = [];

  constructor(
    wire: Wire,
    private readonly queues: Readonly<Record<string, QueueDefaults>>,
  ) {
    this.#wire = wire;
  }

  async one(task: TaskLike, tenant: string | undefined, input: unknown, options: EnqueueOptions = {}): Promise<Stored> {
    const said = toldOptions(task, this.queues, tenant, input, options);
    const text = encodeInput(task.name, task.schema, input);
    const body = jobText(task.name, typeof text === "string" ? text : await text, said);
    return new Promise((resolve, reject) => {
      const { unique, key = unique?.key, request } = options;
      this.#waiting.push({ body, task: task.name, key, request, resolve, reject });
      this.#plan();
    });
  }

  /** Handles in order; the error of a chunk says how many jobs were stored. */
  async many(task: TaskLike, tenant: string | undefined, inputs: readonly unknown[], options?: ManyOptions<unknown>): Promise<readonly Stored[]> {
    if (!Array.isArray(inputs)) throw invalid("inputs", "enqueueMany takes an array; enqueueStream takes any iterable");
    const chunks: (readonly Stored[])[] = [];
    await this.#inChunks(
      task,
      tenant,
      inputs,
      options,
      (body) => this.#batch(body, options?.request !== undefined),
      (stored, chunk) => {
        chunks[chunk] = stored;
      },
    );
    return chunks.flat();
  }

  async stream(task: TaskLike, tenant: string | undefined, inputs: Inputs, options: StreamOptions<unknown> = {}): Promise<StreamSummary> {
    const { onChunk, patience = DEFAULTS.ingest.patience, ...shared } = checkObject("options", options) as StreamOptions<unknown>;
    if (onChunk !== undefined) checkFunction("onChunk", onChunk);
    const longest = checkDuration("patience", patience);
    const summary = { count: 0, created: 0, existing: 0, rejected: 0, orphaned: 0, requestReused: 0 };
    await this.#inChunks(
      task,
      tenant,
      inputs,
      shared,
      (body) => this.#patiently(() => this.#batch(body, shared.request !== undefined), longest),
      (stored) => {
        summary.count += stored.length;
        for (const { enqueued } of stored) summary[enqueued]++;
        onChunk?.({ ...summary });
      },
    );
    return summary;
  }

  batch(tenant: string | undefined, jobs: readonly BatchItem[], options: BatchOptions): Promise<StoredBatch> {
    return sendBatch(this.#wire, jobs, options, (task, input, own) => toldOptions(task, this.queues, tenant, input, own));
  }

  /** Resolves when everything is answered. */
  async idle(): Promise<void> {
    if (this.#waiting.length > 0 || this.#flying > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  async #inChunks(
    task: TaskLike,
    tenant: string | undefined,
    inputs: Inputs,
    options: ManyOptions<unknown> | undefined,
    send: (body: string) => Promise<readonly Stored[]>,
    done: (stored: readonly Stored[], chunk: number) => void,
  ): Promise<void> {
    const { shared, request, pack } = this.#packer(task, tenant, options);
    const flying = new Set<Promise<void>>();
    let failure: { readonly error: unknown } | undefined;
    let chunk: Packed[] = [];
    let size = 0;
    let sent = 0;
    let created = 0;
    const fly = async () => {
      const place = sent++;
      const once = request === undefined ? undefined : chunkRequest(request, place);
      const body = bodyOf(task.name, shared, chunk, once);
      const count = chunk.length;
      chunk = [];
      size = 0;
      const flight: Promise<void> = send(body)
        .then(
          (stored) => {
            created += stored.filter(({ enqueued }) => enqueued === "created").length;
            done(stored, place);
          },
          (error: unknown) => {
            failure ??= { error: unknownIf(ofWholeCall(error, request), { count, request }) };
            if (isPawlError(error) && typeof error.details.stored === "number") created += error.details.stored;
          },
        )
        .finally(() => flying.delete(flight));
      flying.add(flight);
      // A call that is refused with its first chunk stores nothing.
      if (flying.size >= AT_ONCE || (request !== undefined && place === 0)) await Promise.race(flying);
      if (failure !== undefined) throw failure.error;
    };
    const add = (packed: Packed): Promise<void> | undefined => {
      chunk.push(packed);
      size += Buffer.byteLength(packed.text);
      return chunk.length >= BOUNDS.enqueueBatch || size >= MOST_BYTES ? fly() : undefined;
    };
    let index = 0;
    try {
      await each(inputs, (input) => {
        const packed = pack(input, index++);
        return packed instanceof Promise ? packed.then(add) : add(packed);
      });
      if (chunk.length > 0) await fly();
      await Promise.all(flying);
      if (failure !== undefined) throw (failure as { readonly error: unknown }).error;
    } catch (error) {
      await Promise.all(flying);
      throw isPawlError(error) ? pawlError(error.code, { ...error.details, stored: created }, error) : error;
    }
  }

  /** Resolves what they share once; those with limits or options of their own say theirs. */
  #packer(task: TaskLike, tenant: string | undefined, options: ManyOptions<unknown> = {}) {
    const { each: ownOf, request, ...rest } = checkObject("options", options) as ManyOptions<unknown>;
    if (ownOf !== undefined) checkFunction("each", ownOf);
    if (request !== undefined) checkRequest(request);
    checkShared(rest);
    const shared = wireOptions(task, this.queues, tenant, rest);
    const limited = task.options.limits !== undefined;
    const pack = (input: unknown, index: number): Packed | Promise<Packed> => {
      const own: EnqueueOptions | undefined = ownOf?.(input, index);
      if (own !== undefined && (checkObject("what each answers", own) as EnqueueOptions).tx !== undefined)
        throw invalid("tx", "all of them share it: give it beside each, not inside");
      const plain = own === undefined && !limited;
      const said = plain ? undefined : toldOptions(task, this.queues, tenant, input, { ...rest, ...own });
      const text = encodeInput(task.name, task.schema, input);
      const packed = (encoded: string): Packed => ({ plain, text: said === undefined ? encoded : jobText(task.name, encoded, said) });
      return typeof text === "string" ? packed(text) : text.then(packed);
    };
    return { shared, request, pack };
  }

  async #batch(body: string, once: boolean): Promise<readonly Stored[]> {
    const { answers, repeated } = await askBatch(this.#wire, body);
    return answers.map((answer) => {
      if ("error" in answer) throw revive(answer.error);
      return once && repeated && answer.enqueued === "created" ? { ...answer, enqueued: "existing" } : answer;
    });
  }

  /** While an ingest limit lets nothing in, it waits as long as it is told to. */
  async #patiently<T>(send: () => Promise<T>, patience: number): Promise<T> {
    const { clock } = this.#wire;
    const end = clock.monotonic() + patience;
    for (;;) {
      try {
        return await send();
      } catch (error) {
        const wait = isPawlError(error, "ingest_limited") && typeof error.details.retryAfter === "number" ? error.details.retryAfter : undefined;
        if (wait === undefined || clock.monotonic() + wait > end) throw error;
        await restFor(clock, wait);
      }
    }
  }

  #plan(): void {
    if (this.#planned || this.#flying >= AT_ONCE) return;
    this.#planned = true;
    this.#wire.clock.soon(() => {
      this.#planned = false;
      while (this.#waiting.length > 0 && this.#flying < AT_ONCE) void this.#send();
    });
  }

  async #send(): Promise<void> {
    let count = 0;
    for (let size = 0; count < this.#waiting.length && count < BOUNDS.enqueueBatch; count++) {
      size += Buffer.byteLength((this.#waiting[count] as Waiting).body);
      if (count > 0 && size > MOST_BYTES) break;
    }
    const batch = this.#waiting.splice(0, count);
    this.#flying++;
    try {
      if (batch.length === 1) {
        const [only] = batch as [Waiting];
        only.resolve((await this.#wire.json({ method: "POST", path: "/v1/jobs", body: only.body })) as Stored);
      } else {
        const body = `{"jobs":[${batch.map((waiting) => waiting.body).join(",")}]}`;
        const { answers } = await askBatch(this.#wire, body);
        batch.forEach(({ task, key, resolve, reject }, place) => {
          const answer = answers[place] as Answer;
          if ("error" in answer) reject(revive(answer.error));
          // Among many it is an answer; to who enqueued one, an error.
          else if (answer.enqueued === "rejected") reject(pawlError("key_taken", { key: String(key), task, job: answer.id }));
          else resolve(answer);
        });
      }
    } catch (error) {
      for (const { key, request, reject } of batch) reject(unknownIf(error, { count: 1, request, key }));
    } finally {
      this.#flying--;
      if (this.#waiting.length > 0) this.#plan();
      else if (this.#flying === 0) for (const resolve of this.#idle.splice(0)) resolve();
    }
  }
}
