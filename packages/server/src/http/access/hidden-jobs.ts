import { type AttemptView, type Explanation, type Failure, isPawlError, type JobView, type Page, type Pawl, type PawlError } from "pawl";
import { type DeadGroupView, type Grant, pawlError, permit, type Reason, reasonInWords, serviceOf, type TickView } from "pawl/service";
import type { EnqueuedAnswer } from "../contract/jobs/job-answer.js";
import type { BatchItem } from "../contract/jobs/jobs.js";
import type { AnyRoute } from "../contract/route.js";
import { RepeatedAnswer, StatusAnswer } from "../handler.js";
import { problemOf } from "../problem.js";
import type { Principal } from "./principal.js";

/** A caller for some tasks or queues: of the others it learns nothing, not even the ids of their jobs. */
export function isRestricted({ grants }: Pick<Principal, "grants">): boolean {
  return !grants.every(isUnrestricted);
}

function isUnrestricted({ tasks, queues }: Grant): boolean {
  return [tasks, queues].every((patterns) => patterns === undefined || patterns.includes("*"));
}

/** Of jobs by their ids, those that a caller may read. One that is gone may have been anybody's. */
export async function readableOf(ids: Iterable<string>, caller: Principal, pawl: Pawl): Promise<(id: string) => boolean> {
  const { tenant } = caller;
  const lanes = await serviceOf(pawl).lanesOf([...new Set(ids)], { tenant });
  return (id) => {
    const lane = lanes.get(id.toLowerCase());
    return lane !== undefined && permit(caller, "jobs.read", { task: lane.task, queue: lane.queue }).allowed;
  };
}

type IsVisible = (job: string) => boolean;
/** Takes out of an answer the jobs that are not shown. */
type HideJobs = (answer: never, isVisible: IsVisible) => unknown;

/** Answers that name other jobs than those that were asked for. */
const HIDE_BY_ROUTE: Readonly<Record<string, HideJobs>> = {
  "jobs.get": hideInJob,
  "jobs.list": hideInJobs,
  "dead.list": hideInJobs,
  "jobs.history": hideInHistory,
  "jobs.explain": hideInExplanation,
  "dead.groups": hideInGroups,
  "schedules.ticks": hideInTicks,
  "jobs.enqueue": hideInEnqueued,
  "jobs.enqueueMany": hideInEnqueuedMany,
  "schedules.trigger": hideInEnqueued,
};

/** An answer without the ids of jobs that its caller may not read. */
export async function withoutHiddenJobs(answer: unknown, { id: route }: AnyRoute, caller: Principal, pawl: Pawl): Promise<unknown> {
  const hide = Object.hasOwn(HIDE_BY_ROUTE, route) && isRestricted(caller) ? HIDE_BY_ROUTE[route] : undefined;
  if (hide === undefined) return answer;
  if (answer instanceof RepeatedAnswer) return new RepeatedAnswer(await hideJobs(hideInRepeated, answer.answer, caller, pawl));
  if (answer instanceof StatusAnswer) return new StatusAnswer(answer.status, await hideJobs(hide, answer.answer, caller, pawl));
  return hideJobs(hide, answer, caller, pawl);
}

async function hideJobs(hide: HideJobs, answer: unknown, caller: Principal, pawl: Pawl): Promise<unknown> {
  const ids = new Set<string>();
  hide(answer as never, (job) => {
    ids.add(job);
    return true;
  });
  return ids.size === 0 ? answer : hide(answer as never, await readableOf(ids, caller, pawl));
}

/** An error without the id of a job that its caller may not read. */
export async function errorWithoutHiddenJobs(error: unknown, { id: route }: AnyRoute, caller: Principal, pawl: Pawl): Promise<unknown> {
  if (!isPawlError(error, "unique_key_taken") || typeof error.details.job !== "string" || !isRestricted(caller)) return error;
  const { job } = error.details;
  return (await readableOf([job], caller, pawl))(job) ? error : takenByHiddenJob(route);
}

/** Keys and idempotency keys are those of a task or a tenant, whatever the queue: that one is taken is told, and not by which job. */
function takenByHiddenJob(route: string): PawlError {
  return pawlError("forbidden", { action: route, reason: "the job that has its key or idempotency key is not one of its own" });
}

const TAKEN_BY_HIDDEN_JOB: BatchItem = { error: problemOf(takenByHiddenJob("jobs.enqueueMany")) };

function hideInEnqueued(answer: EnqueuedAnswer, isVisible: IsVisible): EnqueuedAnswer {
  if (answer.enqueued !== "created" && !isVisible(answer.id)) throw takenByHiddenJob("jobs.enqueue");
  const shown = hideReplaced(answer, isVisible);
  return shown.job === undefined ? shown : { ...shown, job: hideInJob(shown.job, isVisible) };
}

function hideReplaced(answer: EnqueuedAnswer, isVisible: IsVisible): EnqueuedAnswer {
  const { replaced, ...rest } = answer;
  return replaced === undefined || isVisible(replaced) ? answer : rest;
}

type EnqueueAnswers = { readonly repeated: boolean; readonly results: readonly BatchItem[] };

function hideInEnqueuedMany({ repeated, results }: EnqueueAnswers, isVisible: IsVisible): EnqueueAnswers {
  return {
    repeated,
    results: results.map((answer) => {
      if ("error" in answer) return answer;
      return answer.enqueued === "created" || isVisible(answer.id) ? hideReplaced(answer, isVisible) : TAKEN_BY_HIDDEN_JOB;
    }),
  };
}

/** What somebody else may have created under the same idempotency key, the first time. */
function hideInRepeated({ repeated, results }: EnqueueAnswers, isVisible: IsVisible): EnqueueAnswers {
  return {
    repeated,
    results: results.map((answer) => {
      if ("error" in answer) return answer;
      return isVisible(answer.id) ? hideReplaced(answer, isVisible) : TAKEN_BY_HIDDEN_JOB;
    }),
  };
}

function hideInJob(job: JobView, isVisible: IsVisible): JobView {
  const { waitsFor, failure } = job;
  return {
    ...job,
    ...(waitsFor === undefined ? {} : { waitsFor: waitsFor.filter(isVisible) }),
    ...(failure === undefined ? {} : { failure: hideInFailure(failure, isVisible) }),
  };
}

function hideInJobs(page: Page<JobView>, isVisible: IsVisible): Page<JobView> {
  return { ...page, items: page.items.map((job) => hideInJob(job, isVisible)) };
}

function hideInHistory(page: Page<AttemptView>, isVisible: IsVisible): Page<AttemptView> {
  return {
    ...page,
    items: page.items.map((attempt) =>
      attempt.failure === undefined ? attempt : { ...attempt, failure: hideInFailure(attempt.failure, isVisible) },
    ),
  };
}

const JOB_ID = /\bjob ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b/g;

/** One that died of a job it depends on says of which. What handlers threw is their own. */
function hideInFailure<F extends Pick<Failure, "kind" | "message">>(failure: F, isVisible: IsVisible): F {
  if (failure.kind !== "dependency") return failure;
  return { ...failure, message: failure.message.replaceAll(JOB_ID, (text, id: string) => (isVisible(id) ? text : "a job")) };
}

function hideInExplanation(explanation: Explanation, isVisible: IsVisible): Explanation {
  let { text } = explanation;
  const reasons = explanation.reasons.map((reason) => {
    const hidden = hideInReason(reason, isVisible);
    // What is taken out of these is said without times: they are the same sentences whenever they are made.
    for (const [before, after] of sentences(reason, hidden)) text = text.replace(before, () => after);
    return hidden;
  });
  return { ...explanation, reasons, text };
}

function sentences(reason: Reason<Date>, hidden: Reason<Date>): readonly (readonly [string, string])[] {
  if (reason.kind === "blocked" || reason.kind === "limit_key") return [[reasonInWords(reason, 0).slice(1), reasonInWords(hidden, 0).slice(1)]];
  if (!("failure" in reason) || reason.failure === undefined || !("failure" in hidden) || hidden.failure === undefined) return [];
  return [[reason.failure.message, hidden.failure.message]];
}

function hideInReason(reason: Reason<Date>, isVisible: IsVisible): Reason<Date> {
  const hasVisibleJob = ({ job }: { readonly job: string }) => isVisible(job);
  switch (reason.kind) {
    case "blocked":
      return { ...reason, on: reason.on.filter(hasVisibleJob) };
    case "limit_key": {
      const { holders, ...rest } = reason;
      const left = holders?.filter(hasVisibleJob) ?? [];
      return left.length === 0 ? rest : { ...rest, holders: left };
    }
    case "finished":
    case "retrying":
      return reason.failure === undefined ? reason : { ...reason, failure: hideInFailure(reason.failure, isVisible) };
    default:
      return reason;
  }
}

function hideInGroups(page: Page<DeadGroupView>, isVisible: IsVisible) {
  return {
    ...page,
    items: page.items.map((group) => ({
      ...hideInFailure(group as DeadGroupView & Pick<Failure, "kind">, isVisible),
      sample: hideInJob(group.sample, isVisible),
    })),
  };
}

/** A schedule may have been for another task before. */
function hideInTicks(page: Page<TickView>, isVisible: IsVisible) {
  return {
    ...page,
    items: page.items.map((tick) => {
      if (!("job" in tick) || isVisible(tick.job)) return tick;
      const { job: _, ...rest } = tick;
      return rest;
    }),
  };
}
