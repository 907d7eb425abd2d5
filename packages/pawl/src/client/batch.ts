import { isPawlError, type PawlError } from "../core/error.js";
import { refusal, type StoredBatch } from "../scheduler/batch.js";
import type { Stored } from "../scheduler/enqueuer.js";
import { encodeInput } from "../scheduler/input.js";
import type { BatchOptions, EnqueueOptions } from "../scheduler/options.js";
import type { TaskLike } from "../scheduler/plan.js";
import type { WireOptions } from "./options.js";
import { jobText, unknownIf } from "./packed.js";
import { type Problem, revive } from "./problem.js";
import type { Wire } from "./wire.js";

/** A job of a batch, and its task; or why there is none. */
export interface BatchItem {
  readonly task: TaskLike | PawlError;
  readonly input?: unknown;
  readonly options?: EnqueueOptions;
}

/** What the service says of each. */
export type Answer = (Stored & { readonly task: string }) | { readonly error: Problem };

export async function askBatch(wire: Wire, body: string): Promise<{ readonly answers: readonly Answer[]; readonly repeated: boolean }> {
  const { text, headers } = await wire.call({ method: "POST", path: "/v1/jobs/batch", body });
  return { ...(JSON.parse(text) as { readonly answers: readonly Answer[] }), repeated: headers["idempotency-replayed"] === "true" };
}

type Told = (task: TaskLike, input: unknown, options: EnqueueOptions) => WireOptions;

/** One batch of jobs of any tasks, and what became of each. What can be found wrong here is not sent. */
export async function sendBatch(wire: Wire, jobs: readonly BatchItem[], { request, atomic }: BatchOptions, told: Told): Promise<StoredBatch> {
  const packed: (string | PawlError)[] = [];
  for (const job of jobs) {
    const text = textOf(job, told);
    packed.push(text instanceof Promise ? await text : text);
  }
  const wrong = packed.find((one) => isPawlError(one));
  if (atomic === true && wrong !== undefined) throw wrong;
  const texts = packed.filter((one) => typeof one === "string");
  if (texts.length === 0) return { repeated: false, answers: packed as readonly PawlError[] };
  const said = `${request === undefined ? "" : `"request":${JSON.stringify(request)},`}${atomic === true ? '"atomic":true,' : ""}`;
  try {
    const { answers, repeated } = await askBatch(wire, `{${said}"jobs":[${texts.join(",")}]}`);
    let next = 0;
    return {
      repeated: request !== undefined && repeated,
      answers: packed.map((one) => (isPawlError(one) ? one : revived(answers[next++] as Answer))),
    };
  } catch (error) {
    throw unknownIf(error, { count: texts.length, request });
  }
}

function textOf({ task, input, options = {} }: BatchItem, told: Told): string | PawlError | Promise<string | PawlError> {
  try {
    if (isPawlError(task)) return task;
    const said = told(task, input, options);
    const text = encodeInput(task.name, task.schema, input);
    if (typeof text === "string") return jobText(task.name, text, said);
    return text.then((late) => jobText(task.name, late, said)).catch(refusal);
  } catch (error) {
    return refusal(error);
  }
}

function revived(answer: Answer): StoredBatch["answers"][number] {
  return "error" in answer ? revive(answer.error) : answer;
}
