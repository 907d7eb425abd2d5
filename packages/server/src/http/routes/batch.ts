import { type EnqueueOptions, isPawlError, type PawlError, pawlError, type Scheduler } from "pawl";
import { type BatchItem, enqueueBatch } from "../contract/jobs.js";
import type { BodyOf } from "../contract/route.js";
import { on } from "../handler.js";
import { problemOf } from "../problem.js";
import { STATUS } from "../status.js";
import { enqueuedAnswer } from "./jobs.js";

interface Item {
  readonly task: string;
  readonly input: unknown;
  readonly options: EnqueueOptions | undefined;
}

export const batch = [
  on(enqueueBatch, async ({ body, scheduler, requestId }) => {
    const items = itemsOf(body, requestId);
    return { answers: body.atomic === true ? await allOrNone(scheduler, items) : await eachForItself(scheduler, items) };
  }),
];

function itemsOf({ jobs, task, inputs, options }: BodyOf<typeof enqueueBatch>, key: string | undefined): readonly Item[] {
  if ((jobs === undefined) === (inputs === undefined || task === undefined))
    throw pawlError("field_invalid", { field: "the body", reason: "must have either jobs, or task and inputs", pointer: "" });
  const requestOf = (place: number) => (key === undefined ? undefined : { request: `${key}.${place}` });
  if (jobs === undefined) {
    return (inputs as readonly unknown[]).map((input, place) => ({
      task: task as string,
      input,
      options: key === undefined ? (options as EnqueueOptions | undefined) : { ...requestOf(place), ...(options as EnqueueOptions) },
    }));
  }
  return jobs.map(({ task: own, input, ...given }, place) => ({
    task: own,
    input,
    options: optionsOf({ ...requestOf(place), ...options, ...given } as EnqueueOptions),
  }));
}

function optionsOf(given: EnqueueOptions): EnqueueOptions | undefined {
  return Object.keys(given).length === 0 ? undefined : given;
}

/** Jobs of one task that want nothing of their own are stored together: that is the fast way. Tasks follow one another. */
async function allOrNone(scheduler: Scheduler, items: readonly Item[]): Promise<readonly BatchItem[]> {
  const tasks = new Set(items.map(({ task }) => task));
  if (tasks.size > 1) throw pawlError("field_invalid", { field: "/jobs", reason: "must be of one task to be stored all or none", pointer: "/jobs" });
  const [first] = items as readonly [Item, ...Item[]];
  const inputs = items.map(({ input }) => input);
  const each = items.some(({ options }) => options !== undefined) ? { each: (_: unknown, place: number) => items[place]?.options } : undefined;
  return (await scheduler.enqueueMany(first.task, inputs, each)).map(enqueuedAnswer);
}

/** Task by task as fast as that; where one of them cannot be stored so, each of them by itself. */
async function eachForItself(scheduler: Scheduler, items: readonly Item[]): Promise<readonly BatchItem[]> {
  const answers: BatchItem[] = new Array(items.length);
  const places = new Map<string, number[]>();
  for (const [place, { task }] of items.entries()) {
    const known = places.get(task);
    if (known === undefined) places.set(task, [place]);
    else known.push(place);
  }
  for (const own of places.values()) {
    const group = own.map((place) => items[place] as Item);
    // That a parent does not exist is found out when the others are stored already.
    const stored = group.some(({ options }) => options?.dependsOn !== undefined) ? await apart(scheduler, group) : await together(scheduler, group);
    for (const [index, place] of own.entries()) answers[place] = stored[index] as BatchItem;
  }
  return answers;
}

async function together(scheduler: Scheduler, group: readonly Item[]): Promise<readonly BatchItem[]> {
  try {
    return await allOrNone(scheduler, group);
  } catch (error) {
    if (isRefusal(error) && !hasStored(error)) return apart(scheduler, group);
    throw error;
  }
}

/** They meet again in the scheduler, which stores what comes at once together and answers for each. */
function apart(scheduler: Scheduler, group: readonly Item[]): Promise<readonly BatchItem[]> {
  return Promise.all(group.map((item) => alone(scheduler, item)));
}

async function alone(scheduler: Scheduler, { task, input, options }: Item): Promise<BatchItem> {
  try {
    return enqueuedAnswer(await scheduler.enqueue(task, input, options));
  } catch (error) {
    if (isRefusal(error)) return { error: problemOf(error) };
    throw error;
  }
}

/** Something is wrong with a job, and not with the service. */
function isRefusal(error: unknown): error is PawlError {
  return isPawlError(error) && STATUS[error.code] < 500;
}

/** Then to go on with each alone would store some of them twice. */
function hasStored({ details }: PawlError): boolean {
  return typeof details.stored === "number" && details.stored > 0;
}
