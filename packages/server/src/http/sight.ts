import {
  type AttemptPage,
  type DeadGroupView,
  type Explanation,
  type Failure,
  type Grant,
  isPawlError,
  type JobPage,
  type JobView,
  type Pawl,
  type PawlError,
  pawlError,
  permit,
  type Reason,
  reasonInWords,
  type TickView,
} from "pawl";
import type { Principal } from "./access.js";
import type { BatchItem } from "./contract/jobs.js";
import type { EnqueuedAnswer } from "./contract/jobs-answer.js";
import type { AnyRoute } from "./contract/route.js";
import { Repeated } from "./handler.js";
import { problemOf } from "./problem.js";

/** A caller for some tasks or queues: of the others it learns nothing, not even the ids of their jobs. */
export function isLimited({ grants }: Pick<Principal, "grants">): boolean {
  return !grants.every(isWhole);
}

function isWhole({ tasks, queues }: Grant): boolean {
  return [tasks, queues].every((patterns) => patterns === undefined || patterns.includes("*"));
}

export type Lanes = Pick<Pawl, "lanesOf">;

/** Of jobs by their ids, those that a caller may read. One that is gone may have been anybody's. */
export async function readableOf(ids: Iterable<string>, caller: Principal, pawl: Lanes): Promise<(id: string) => boolean> {
  const { tenant } = caller;
  const lanes = await pawl.lanesOf([...new Set(ids)], { tenant });
  return (id) => {
    const lane = lanes.get(id.toLowerCase());
    return lane !== undefined && permit(caller, "jobs.read", { task: lane.task, queue: lane.queue }).allowed;
  };
}

type Shown = (job: string) => boolean;
/** Takes out of an answer the jobs that are not shown. */
type Veil = (answer: never, shown: Shown) => unknown;

/** Answers that name other jobs than those that were asked for. */
const VEILS: Readonly<Record<string, Veil>> = {
  "jobs.get": veiledJob,
  "jobs.wait": veiledJob,
  "jobs.list": veiledJobs,
  "dead.list": veiledJobs,
  "jobs.history": veiledHistory,
  "jobs.explain": veiledExplanation,
  "dead.groups": veiledGroups,
  "schedules.ticks": veiledTicks,
  "jobs.enqueue": veiledEnqueued,
  "jobs.enqueueMany": veiledBatch,
  "schedules.trigger": veiledEnqueued,
};

/** An answer without the ids of jobs that its caller may not read. */
export async function withoutOthers(answer: unknown, { id: route }: AnyRoute, caller: Principal, pawl: Lanes): Promise<unknown> {
  const veil = Object.hasOwn(VEILS, route) && isLimited(caller) ? VEILS[route] : undefined;
  if (veil === undefined) return answer;
  if (answer instanceof Repeated) return new Repeated(await unveiled(veiledRepetition, answer.answer, caller, pawl));
  return unveiled(veil, answer, caller, pawl);
}

async function unveiled(veil: Veil, answer: unknown, caller: Principal, pawl: Lanes): Promise<unknown> {
  const named = new Set<string>();
  veil(answer as never, (job) => {
    named.add(job);
    return true;
  });
  return named.size === 0 ? answer : veil(answer as never, await readableOf(named, caller, pawl));
}

/** An error without the id of a job that its caller may not read. */
export async function errorWithoutOthers(error: unknown, { id: route }: AnyRoute, caller: Principal, pawl: Lanes): Promise<unknown> {
  if (!isPawlError(error, "key_taken") || typeof error.details.job !== "string" || !isLimited(caller)) return error;
  const { job } = error.details;
  return (await readableOf([job], caller, pawl))(job) ? error : takenByOthers(route);
}

/** Keys and request ids are those of a task or a tenant, whatever the queue: that one is taken is told, and not by which job. */
function takenByOthers(route: string): PawlError {
  return pawlError("forbidden", { action: route, reason: "the job that has its key or request id is not one of its own" });
}

const TAKEN: BatchItem = { error: problemOf(takenByOthers("jobs.enqueueMany")) };

function veiledEnqueued(answer: EnqueuedAnswer, shown: Shown): EnqueuedAnswer {
  if (answer.enqueued !== "created" && !shown(answer.id)) throw takenByOthers("jobs.enqueue");
  return withoutReplaced(answer, shown);
}

function withoutReplaced(answer: EnqueuedAnswer, shown: Shown): EnqueuedAnswer {
  const { replaced, ...rest } = answer;
  return replaced === undefined || shown(replaced) ? answer : rest;
}

type Batch = { readonly answers: readonly BatchItem[] };

function veiledBatch({ answers }: Batch, shown: Shown): Batch {
  return {
    answers: answers.map((answer) => {
      if ("error" in answer) return answer;
      return answer.enqueued === "created" || shown(answer.id) ? withoutReplaced(answer, shown) : TAKEN;
    }),
  };
}

/** What somebody else may have created under the same request id, the first time. */
function veiledRepetition({ answers }: Batch, shown: Shown): Batch {
  return {
    answers: answers.map((answer) => {
      if ("error" in answer) return answer;
      return shown(answer.id) ? withoutReplaced(answer, shown) : TAKEN;
    }),
  };
}

function veiledJob(job: JobView, shown: Shown): JobView {
  const { waitsFor, failure } = job;
  return {
    ...job,
    ...(waitsFor === undefined ? {} : { waitsFor: waitsFor.filter(shown) }),
    ...(failure === undefined ? {} : { failure: veiledFailure(failure, shown) }),
  };
}

function veiledJobs(page: JobPage, shown: Shown): JobPage {
  return { ...page, jobs: page.jobs.map((job) => veiledJob(job, shown)) };
}

function veiledHistory(page: AttemptPage, shown: Shown): AttemptPage {
  return {
    ...page,
    attempts: page.attempts.map((attempt) =>
      attempt.failure === undefined ? attempt : { ...attempt, failure: veiledFailure(attempt.failure, shown) },
    ),
  };
}

const JOB_ID = /\bjob ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b/g;

/** One that died of a job it depends on says of which. What handlers threw is their own. */
function veiledFailure<F extends Pick<Failure, "kind" | "message">>(failure: F, shown: Shown): F {
  if (failure.kind !== "dependency") return failure;
  return { ...failure, message: failure.message.replaceAll(JOB_ID, (text, id: string) => (shown(id) ? text : "a job")) };
}

function veiledExplanation(explanation: Explanation, shown: Shown): Explanation {
  let { text } = explanation;
  const reasons = explanation.reasons.map((reason) => {
    const veiled = veiledReason(reason, shown);
    // What is taken out of these is said without times: they are the same sentences whenever they are made.
    for (const [before, after] of sentences(reason, veiled)) text = text.replace(before, () => after);
    return veiled;
  });
  return { ...explanation, reasons, text };
}

function sentences(reason: Reason, veiled: Reason): readonly (readonly [string, string])[] {
  if (reason.kind === "blocked" || reason.kind === "limited") return [[reasonInWords(reason, 0).slice(1), reasonInWords(veiled, 0).slice(1)]];
  if (!("failure" in reason) || reason.failure === undefined || !("failure" in veiled) || veiled.failure === undefined) return [];
  return [[reason.failure.message, veiled.failure.message]];
}

function veiledReason(reason: Reason, shown: Shown): Reason {
  const visible = ({ job }: { readonly job: string }) => shown(job);
  switch (reason.kind) {
    case "blocked":
      return { ...reason, on: reason.on.filter(visible) };
    case "limited": {
      const { holders, ...rest } = reason;
      const left = holders?.filter(visible) ?? [];
      return left.length === 0 ? rest : { ...rest, holders: left };
    }
    case "finished":
    case "retrying":
      return reason.failure === undefined ? reason : { ...reason, failure: veiledFailure(reason.failure, shown) };
    default:
      return reason;
  }
}

function veiledGroups({ groups }: { readonly groups: readonly DeadGroupView[] }, shown: Shown) {
  return {
    groups: groups.map((group) => ({
      ...veiledFailure(group as DeadGroupView & Pick<Failure, "kind">, shown),
      sample: veiledJob(group.sample, shown),
    })),
  };
}

/** A schedule may have been for another task before. */
function veiledTicks({ ticks }: { readonly ticks: readonly TickView[] }, shown: Shown) {
  return {
    ticks: ticks.map((tick) => {
      if (!("job" in tick) || shown(tick.job)) return tick;
      const { job: _, ...rest } = tick;
      return rest;
    }),
  };
}
