import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type AnyTask, type Context, RetryAfter, task } from "../../../packages/pawl/src/index.js";
import type { HandlerLog, HandlerLogLine } from "./handler-log.js";

interface WaitInput {
  readonly ms?: number;
}
interface BlockInput extends WaitInput {
  /** takes a core for it */
  readonly busy?: boolean;
}
interface KeyedInput {
  readonly account: string;
  readonly no?: number;
}
interface PoisonInput extends WaitInput {
  readonly how: "exit" | "abort" | "kill";
}

/** For handlers that fail on purpose. */
const OFTEN = Array.from({ length: 50 }, () => "50ms" as const);

/** ms that an account is asked to leave a service alone */
export const REST = 2_000;

/**
 * What the workers of recovery tests run. Every handler leaves lines in the handler log, which outlives its process. The test
 * itself enqueues with the same tasks, without a handler log: it never runs them.
 */
export function childTasks(handlerLog?: HandlerLog): readonly AnyTask[] {
  const note = (ctx: Context, what: HandlerLogLine["step"], why?: string, durable = false) =>
    handlerLog?.write(
      {
        job: ctx.job,
        task: ctx.task,
        step: what,
        pid: process.pid,
        at: Date.now(),
        attempt: ctx.attempt,
        ...(why === undefined ? {} : { reason: why }),
      },
      durable,
    );

  /** Waits as long as it may: a handler that minds its signal. */
  const wait = async (ctx: Context, ms: number) => {
    try {
      await sleep(ms, undefined, { signal: ctx.signal });
    } catch (error) {
      note(ctx, "abort", String((ctx.signal.reason as Error | undefined)?.message ?? ctx.signal.reason));
      throw error;
    }
  };

  return [
    task("quick", (_: unknown, ctx) => {
      note(ctx, "start");
      note(ctx, "end");
    }),

    task("slow", async ({ ms = 1_000 }: WaitInput, ctx) => {
      note(ctx, "start");
      await wait(ctx, ms);
      note(ctx, "end");
    }),

    /** The same by fifty names. */
    ...Array.from({ length: 50 }, (_, no) =>
      task(`slow ${no}`, async ({ ms = 1_000 }: WaitInput, ctx) => {
        await wait(ctx, ms);
      }),
    ),

    /** Blocks the event loop. */
    task("block", ({ ms = 1_000, busy = false }: BlockInput, ctx) => {
      note(ctx, "start");
      const end = performance.now() + ms;
      if (busy) while (performance.now() < end);
      else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
      note(ctx, "end");
    }),

    /** Ignores its signal, and tries to commit long after its time. */
    task("hang", async ({ ms = 60_000 }: WaitInput, ctx) => {
      note(ctx, "start");
      ctx.signal.addEventListener("abort", () => note(ctx, "abort", String((ctx.signal.reason as Error).message)));
      await sleep(ms);
      await ctx.transaction((tx) => addEffect(tx, ctx)).catch(() => {});
      note(ctx, "end");
    }),

    /** Takes its worker down. */
    task("poison", async ({ how, ms = 0 }: PoisonInput, ctx) => {
      note(ctx, "start", how);
      if (ms > 0) await sleep(ms);
      if (how === "exit") process.exit(7);
      if (how === "abort") process.abort();
      process.kill(process.pid, "SIGKILL");
      await sleep(60_000);
    }),

    /** Its effect commits with its settlement. */
    task("counter", { retry: 0 }, async ({ ms = 0 }: WaitInput, ctx) => {
      note(ctx, "start");
      if (ms > 0) await wait(ctx, ms);
      await ctx.transaction((tx) => addEffect(tx, ctx));
      note(ctx, "end");
    }),

    /** Its effect outside is recorded; the first attempts fail after it. */
    task("once", { retry: OFTEN }, async ({ ms = 0 }: WaitInput, ctx) => {
      note(ctx, "start");
      await ctx.once("effect", () => note(ctx, "effect"));
      if (ms > 0) await wait(ctx, ms);
      if (ctx.attempt < 3) throw new Error("not yet");
      note(ctx, "end");
    }),

    /** Calls a service that is down as long as there is a file of that name. */
    task("call", { breaker: { probeInterval: "3s" }, retry: () => 200 }, ({ down }: { readonly down?: string }, ctx) => {
      note(ctx, "start");
      if (down !== undefined && existsSync(down)) throw new Error("503");
      note(ctx, "end");
    }),

    /** Of what a worker has, each takes as much as its name says. */
    ...[1, 3].map((memory) =>
      task(`takes ${memory}`, { needs: { resources: { memory } } }, async ({ ms = 0 }: WaitInput, ctx) => {
        note(ctx, "start");
        await wait(ctx, ms);
        note(ctx, "end");
      }),
    ),
    task("needs gpu", { needs: { capabilities: ["gpu"] } }, (_: unknown, ctx) => note(ctx, "start")),

    /** Three of an account at a time. */
    task(
      "limited",
      { limits: [{ name: "account", key: "account", concurrency: 3 }], retry: OFTEN },
      async ({ ms = 0 }: WaitInput & KeyedInput, ctx) => {
        note(ctx, "start");
        await wait(ctx, ms);
        note(ctx, "end");
      },
    ),

    /** Twenty of an account per second, and four at once. */
    task(
      "paced",
      { limits: [{ key: "account", rate: { limit: 20, per: "1s", burst: 4 } }], retry: OFTEN },
      async ({ ms = 0 }: WaitInput & KeyedInput, ctx) => {
        note(ctx, "start");
        await wait(ctx, ms);
        note(ctx, "end");
      },
    ),

    /** One of an account at a time, in order; every third one fails at first. */
    task(
      "ordered",
      { limits: [{ key: ({ account }) => account, serial: true }], retry: OFTEN },
      async ({ ms = 0, no = 0 }: WaitInput & KeyedInput, ctx) => {
        note(ctx, "start");
        await wait(ctx, ms);
        if (no % 3 === 0 && ctx.attempt < 3) throw new Error("not yet");
        note(ctx, "end");
      },
    ),

    /** Four of an account at a time; it is told to come back later as long as there is a file of that name. */
    task(
      "polite",
      { limits: [{ key: "account", concurrency: 4 }], retry: OFTEN },
      async ({ ms = 0, down }: WaitInput & KeyedInput & { readonly down?: string }, ctx) => {
        note(ctx, "start");
        await wait(ctx, ms);
        if (down !== undefined && existsSync(down)) throw new RetryAfter(REST);
        note(ctx, "end");
      },
    ),

    task("fragile", { atMostOnce: true }, async ({ ms = 0 }: WaitInput, ctx) => {
      note(ctx, "start", undefined, true);
      if (ms > 0) await sleep(ms);
      note(ctx, "end");
    }),
  ];
}

/** Read back by `invariants.ts`. */
export const EFFECTS = "create table if not exists public.effects (job uuid not null, at timestamptz not null default clock_timestamp())";

async function addEffect(tx: Parameters<Parameters<Context["transaction"]>[0]>[0], ctx: Context): Promise<void> {
  await tx.query("insert into public.effects (job) values ($1)", [ctx.job]);
}
