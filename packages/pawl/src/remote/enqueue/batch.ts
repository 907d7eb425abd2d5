import { isPawlError, type PawlError } from "../../core/values/error.js";
import { encodeInput } from "../../scheduler/enqueue/encode-input.js";
import type { StoredJob } from "../../scheduler/enqueue/enqueuer.js";
import { refusal, type StoredItems } from "../../scheduler/enqueue/item-enqueuer.js";
import type { TaskLike } from "../../scheduler/enqueue/job-plan.js";
import type { EnqueueAllOptions, EnqueueOptions } from "../../scheduler/options.js";
import type { HttpTransport } from "../transport/http-transport.js";
import type { JobFields } from "../transport/job-fields.js";
import { type Problem, revive } from "../transport/problem.js";
import { jobText, unknownIf } from "./encoded-job.js";

/** A job of a batch, and its task; or why there is none. */
export interface BatchItem {
  readonly task: TaskLike | PawlError;
  readonly input?: unknown;
  readonly options?: EnqueueOptions;
}

/** What the service says of each. */
export type RemoteBatchAnswer = (StoredJob & { readonly task: string }) | { readonly error: Problem };

interface RemoteBatch {
  readonly repeated: boolean;
  readonly results: readonly RemoteBatchAnswer[];
}

export async function askBatch(transport: HttpTransport, body: string): Promise<RemoteBatch> {
  const { text } = await transport.call({ method: "POST", path: "/v1/jobs/many", body });
  return JSON.parse(text) as RemoteBatch;
}

type ToJobFields = (task: TaskLike, input: unknown, options: EnqueueOptions) => JobFields;

/** One batch of jobs of any tasks, and what became of each. What can be found wrong here is not sent. */
export async function sendBatch(
  transport: HttpTransport,
  jobs: readonly BatchItem[],
  { idempotencyKey, atomic }: EnqueueAllOptions,
  toFields: ToJobFields,
): Promise<StoredItems> {
  const encoded: (string | PawlError)[] = [];
  for (const job of jobs) {
    const text = textOf(job, toFields);
    encoded.push(text instanceof Promise ? await text : text);
  }
  const firstError = encoded.find((one) => isPawlError(one));
  if (atomic === true && firstError !== undefined) throw firstError;
  const texts = encoded.filter((one) => typeof one === "string");
  if (texts.length === 0) return { repeated: false, results: encoded as readonly PawlError[] };
  const fields = `${idempotencyKey === undefined ? "" : `"idempotencyKey":${JSON.stringify(idempotencyKey)},`}${atomic === true ? '"atomic":true,' : ""}`;
  try {
    const { results: answers, repeated } = await askBatch(transport, `{${fields}"jobs":[${texts.join(",")}]}`);
    let next = 0;
    return {
      repeated: idempotencyKey !== undefined && repeated,
      results: encoded.map((one) => (isPawlError(one) ? one : revived(answers[next++] as RemoteBatchAnswer))),
    };
  } catch (error) {
    throw unknownIf(error, { count: texts.length, idempotencyKey });
  }
}

function textOf({ task, input, options = {} }: BatchItem, toFields: ToJobFields): string | PawlError | Promise<string | PawlError> {
  try {
    if (isPawlError(task)) return task;
    const fields = toFields(task, input, options);
    const text = encodeInput(task.name, task.schema, input);
    if (typeof text === "string") return jobText(task.name, text, fields);
    return text.then((late) => jobText(task.name, late, fields)).catch(refusal);
  } catch (error) {
    return refusal(error);
  }
}

function revived(answer: RemoteBatchAnswer): StoredItems["results"][number] {
  return "error" in answer ? revive(answer.error) : answer;
}
