import type { ClientBase } from "pg";
import { describe, expectTypeOf, test } from "vitest";
import { z } from "zod";
import type { Policies } from "./core/sharing/policy.js";
import {
  type InputOf,
  isPawlError,
  type Job,
  type JobId,
  type JobView,
  type OutputOf,
  type Pawl,
  type Scheduler,
  type Task,
  type Transaction,
  task,
} from "./index.js";
import type { StreamSummary } from "./scheduler/options.js";

const parsed = task(
  "parsed",
  { input: z.object({ at: z.string().transform((text) => new Date(text)), n: z.number().default(1) }) },
  async (input) => {
    expectTypeOf(input).toEqualTypeOf<{ at: Date; n: number }>();
    return { late: input.at.getTime() };
  },
);
const bare = task("bare", (input: { id: string }) => input.id.length);
const optioned = task("optioned", { queue: "q", retry: 3 }, async (input: number[]) => input.length > 0);
const inputless = task("inputless", async (_: undefined, ctx) => ctx.attempt);
const anything = task("anything", () => {});

declare const pawl: Pawl;
/** Never called: its types are the test. */
const untested = (_: () => unknown) => {};

describe("the types of the public API", () => {
  test("a task knows what callers pass, what its handler gets and what it returns", () => {
    expectTypeOf(parsed).toEqualTypeOf<Task<{ at: string; n?: number | undefined }, { late: number }, { at: Date; n: number }>>();
    expectTypeOf<InputOf<typeof parsed>>().toEqualTypeOf<{ at: string; n?: number | undefined }>();
    expectTypeOf<OutputOf<typeof parsed>>().toEqualTypeOf<{ late: number }>();
    expectTypeOf<OutputOf<typeof bare>>().toEqualTypeOf<number>();
    expectTypeOf<OutputOf<typeof optioned>>().toEqualTypeOf<boolean>();
  });

  test("enqueue takes the input of the task and answers with its output", () => {
    untested(async () => {
      expectTypeOf(await pawl.enqueue(parsed, { at: "2030-01-01" })).toEqualTypeOf<Job<{ late: number }>>();
      expectTypeOf(await (await pawl.enqueue(bare, { id: "x" }, { delay: "1h" })).result()).toEqualTypeOf<number>();
      expectTypeOf((await (await pawl.enqueue(optioned, [1])).get()).output).toEqualTypeOf<boolean | undefined>();
      expectTypeOf(await pawl.enqueue("by name", { whatever: true })).toEqualTypeOf<Job<unknown>>();
      await pawl.enqueue("by name");
      await pawl.enqueue(inputless);
      await pawl.enqueue(anything);
      await pawl.enqueue(anything, undefined, { priority: "high" });

      // @ts-expect-error a Date cannot be stored: the schema takes a text
      await pawl.enqueue(parsed, { at: new Date() });
      // @ts-expect-error the input is missing
      await pawl.enqueue(bare);
      // @ts-expect-error the input is of another task
      await pawl.enqueue(bare, [1]);
      // @ts-expect-error a misspelt option
      await pawl.enqueue(bare, { id: "x" }, { dely: "1h" });
      // @ts-expect-error no such priority
      await pawl.enqueue(bare, { id: "x" }, { priority: "urgent" });
      // @ts-expect-error not a policy
      await pawl.enqueue(bare, { id: "x" }, { unique: { key: "k", onConflict: "fight" } });
    });
  });

  test("a call answers with the output, and takes options of the job and of the wait", () => {
    untested(async () => {
      expectTypeOf(await pawl.call(bare, { id: "x" }, { wait: "30s", signal: new AbortController().signal, priority: 7 })).toEqualTypeOf<number>();
      expectTypeOf(await pawl.call("bare", { id: "x" })).toEqualTypeOf<unknown>();
      // @ts-expect-error the input is of another task
      await pawl.call(bare, [1]);
      // @ts-expect-error a job in a transaction exists only when that commits
      await pawl.call(bare, { id: "x" }, { tx: undefined as never as Transaction });
    });
  });

  test("many are typed like one", () => {
    untested(async () => {
      expectTypeOf(await pawl.enqueueMany(bare, [{ id: "x" }])).toEqualTypeOf<readonly Job<number>[]>();
      await pawl.enqueueMany(bare, [{ id: "x" }], {
        each(input, index) {
          expectTypeOf(input).toEqualTypeOf<{ id: string }>();
          expectTypeOf(index).toEqualTypeOf<number>();
          return { unique: input.id };
        },
      });
      expectTypeOf(
        await pawl.enqueueStream(
          bare,
          (async function* () {
            yield { id: "x" };
          })(),
        ),
      ).toEqualTypeOf<StreamSummary>();

      // @ts-expect-error one of them is wrong
      await pawl.enqueueMany(bare, [{ id: "x" }, { id: 7 }]);
      // @ts-expect-error all of them would share the key
      await pawl.enqueueMany(bare, [{ id: "x" }], { unique: "k" });
      // @ts-expect-error the iterable yields something else
      await pawl.enqueueStream(bare, [1, 2]);
    });
  });

  test("jobs can be named by id, handle or view", () => {
    untested(async () => {
      const job = await pawl.enqueue(bare, { id: "x" });
      expectTypeOf(job.id).toEqualTypeOf<JobId>();
      expectTypeOf(await pawl.jobs.get(job)).toEqualTypeOf<JobView<unknown>>();
      await pawl.jobs.get(job.id);
      await pawl.jobs.get("01890000-0000-7000-8000-000000000000");
      await pawl.enqueue(bare, { id: "y" }, { dependsOn: [job, job.id, await job.get()], onDependencyDeath: "run" });
    });
  });

  test("a tenant's scheduler has no way to touch what all tenants share", () => {
    untested(() => {
      const acme = pawl.forTenant("acme");
      expectTypeOf(acme).toEqualTypeOf<Scheduler>();
      expectTypeOf(acme).not.toHaveProperty("queues");
      expectTypeOf(acme).not.toHaveProperty("series");
      expectTypeOf(acme).not.toHaveProperty("close");
    });
  });

  test("policies are typed by what they are of: what makes no sense there does not compile", () => {
    untested(async () => {
      expectTypeOf(
        await pawl.tenants.update("acme", { weight: 2, concurrency: 5, rate: { limit: 1, per: "1s" }, ingest: { depth: 10 } }),
      ).toEqualTypeOf<Policies["tenant"]>();
      expectTypeOf(
        await pawl.queues.update("default", { priorityWeights: { 9: 4 }, priorityMinimum: { 0: 0.1 }, strictPriority: true, aging: "1m" }),
      ).toEqualTypeOf<Policies["queue"]>();
      expectTypeOf(await pawl.tasks.update("bare", { concurrency: 1 })).toEqualTypeOf<Policies["task"]>();
      await pawl.queues.update("default", { strictPriority: null, aging: null, ingest: null });
      // @ts-expect-error queues have no weight of their own
      await pawl.queues.update("default", { weight: 2 });
      // @ts-expect-error a tenant has no priorities
      await pawl.tenants.update("acme", { strictPriority: true });
      // @ts-expect-error tasks do not share: they have limits only
      await pawl.tasks.update("bare", { weight: 2 });
      // @ts-expect-error there is no such priority
      await pawl.queues.update("default", { priorityWeights: { 10: 1 } });
      // @ts-expect-error a rate is so many per time
      await pawl.tenants.update("acme", { rate: { limit: 1 } });
      // @ts-expect-error an age is a duration
      await pawl.queues.update("default", { aging: true });
    });
  });

  test("a client of pg is a transaction", () => {
    expectTypeOf<ClientBase>().toExtend<Transaction>();
  });

  test("an error is known by its code, and an ingest limit says until when", () => {
    untested((error: unknown = undefined) => {
      if (isPawlError(error, "ingest_limited")) {
        expectTypeOf(error.code).toEqualTypeOf<"ingest_limited">();
        expectTypeOf(error.details.retryAfter).toEqualTypeOf<number>();
      }
      // @ts-expect-error there is no such code
      isPawlError(error, "ingest_limitted");
    });
  });

  test("events are typed by name", () => {
    untested(() => {
      pawl.on("attempt.settled", (event) => expectTypeOf(event.duration).toEqualTypeOf<number>());
      // @ts-expect-error there is no such event
      pawl.on("attempt.exploded", () => {});
    });
  });
});
