import { describe, expect, it } from "vitest";
import { type AnyTask, type Context, type ForeignTransaction, type Job, open, task } from "../../packages/pawl/src/index.js";
import { proxiedStage } from "../support/fresh-stage.js";
import type { Wire } from "../support/proxy.js";
import { describeOn } from "../support/servers.js";
import { STEADY, type Stage } from "../support/stage.js";

interface Scene {
  readonly stage: Stage;
  readonly proxy: Wire;
  /** runs the handler once, with a single attempt, and answers when its job is over */
  run(handler: (ctx: Context) => Promise<unknown>): Promise<{ readonly job: Job; readonly outcomes: readonly string[] }>;
}

/** A worker of this process, which reaches its store through a wire that can be cut. */
async function scene(work: (scene: Scene) => Promise<void>): Promise<void> {
  const proxied = await proxiedStage();
  await using stage = proxied.stage;
  const { proxy } = proxied;
  await work({
    stage,
    proxy,
    async run(handler) {
      const only: AnyTask = task("only", { retry: 0 }, (_: unknown, ctx) => handler(ctx));
      await using pawl = await open(stage.url, { ...STEADY.open, tasks: [only] });
      await pawl.work(STEADY.work);
      const job = await pawl.enqueue(only);
      await stage.drained();
      return { job, outcomes: await stage.history(job.id) };
    },
  });
}

const addEffect = (tx: ForeignTransaction, ctx: Context) => tx.query("insert into public.effects (job) values ($1)", [ctx.job]);
const effects = (stage: Stage) => stage.one<number>("select count(*)::int from public.effects");
/** Ends the connection of a transaction from elsewhere, as an operator, a failover or a server that restarts does. */
async function terminate(stage: Stage, tx: ForeignTransaction): Promise<void> {
  const [row] = (await tx.query("select pg_backend_pid() as pid", [])).rows as [{ pid: number }];
  await stage.rows("select pg_terminate_backend($1)", [row.pid]);
}

const NOT_SPENT = ["snoozed", "succeeded"];

describeOn("embedded18", () => {
  describe.concurrent("a connection that is lost under a handler spends no attempt", () => {
    it("while it looks for what `ctx.once` recorded", () =>
      scene(async ({ proxy, run }) => {
        let tries = 0;
        const { outcomes } = await run(async (ctx) => {
          const lost = ++tries === 1 ? proxy.loseAnswer(/pawl_recall/) : undefined;
          await ctx.once("effect", () => 1).finally(() => lost);
        });
        expect(outcomes).toEqual(NOT_SPENT);
      }));

    it("after `ctx.once` wrote its record: the next attempt finds it, and its effect happens once", () =>
      scene(async ({ proxy, run }) => {
        let tries = 0;
        let happened = 0;
        const { outcomes } = await run(async (ctx) => {
          if (++tries === 1) void proxy.loseAnswer(/pawl_record/);
          await ctx.once("effect", () => ++happened);
        });
        expect(outcomes).toEqual(NOT_SPENT);
        expect(happened).toBe(1);
      }));

    it.each<{ readonly when: string; readonly statement: string; readonly told: (error: unknown) => unknown }>([
      { when: "a statement of its own is under way", statement: "select pg_sleep(30)", told: (error) => error },
      {
        when: "a statement of its own is under way, and it throws an error of its own",
        statement: "select pg_sleep(30)",
        told: () => new Error("no"),
      },
      { when: "its transaction is idle", statement: "select 1", told: (error) => new Error("could not save", { cause: error }) },
    ])("while $when", ({ statement, told }) =>
      scene(async ({ stage, proxy, run }) => {
        let tries = 0;
        const { outcomes } = await run(async (ctx) => {
          try {
            await ctx.transaction(async (tx) => {
              await addEffect(tx, ctx);
              if (++tries > 1) return;
              if (statement === "select 1") proxy.cut();
              else void proxy.request(/pg_sleep/).then(() => proxy.cut());
              await tx.query(statement, []);
            });
          } catch (error) {
            throw told(error);
          }
        });
        expect(outcomes).toEqual(NOT_SPENT);
        expect(await effects(stage)).toBe(1);
      }),
    );

    it("that the server ends while its transaction is idle", () =>
      scene(async ({ stage, run }) => {
        let tries = 0;
        const { outcomes } = await run((ctx) =>
          ctx.transaction(async (tx) => {
            await addEffect(tx, ctx);
            if (++tries === 1) await terminate(stage, tx);
            await addEffect(tx, ctx);
          }),
        );
        expect(outcomes).toEqual(NOT_SPENT);
        expect(await effects(stage)).toBe(2);
      }));

    it("before its transaction begins, for a while", () =>
      scene(async ({ stage, proxy, run }) => {
        let tries = 0;
        const { outcomes } = await run(async (ctx) => {
          if (++tries === 1) {
            await proxy.refuse();
            setTimeout(() => void proxy.accept(), 500);
          }
          await ctx.transaction((tx) => addEffect(tx, ctx));
        });
        expect(outcomes).toEqual(NOT_SPENT);
        expect(await effects(stage)).toBe(1);
      }));

    it("before it commits: nothing of it was done, and the next attempt does it once", () =>
      scene(async ({ stage, proxy, run }) => {
        let tries = 0;
        const { outcomes } = await run((ctx) =>
          ctx.transaction(async (tx) => {
            await addEffect(tx, ctx);
            if (++tries === 1) void proxy.stopAt({ at: /commit\0/, when: "before" }).then(() => proxy.cut());
          }),
        );
        expect(outcomes).toEqual(NOT_SPENT);
        expect(await effects(stage)).toBe(1);
      }));
  });

  describe.concurrent("a commit whose answer is lost", () => {
    it("has happened: its job has succeeded and is not run again", () =>
      scene(async ({ stage, proxy, run }) => {
        const { outcomes } = await run((ctx) =>
          ctx.transaction(async (tx) => {
            await addEffect(tx, ctx);
            void proxy.loseAnswer(/commit\0/);
          }),
        );
        expect(outcomes).toEqual(["succeeded"]);
        expect(await effects(stage)).toBe(1);
      }));

    it("is not repeated by a handler that tries it again in the same attempt", () =>
      scene(async ({ stage, proxy, run }) => {
        const { outcomes } = await run(async (ctx) => {
          void proxy.loseAnswer(/commit\0/);
          const move = () => ctx.transaction((tx) => addEffect(tx, ctx));
          await move().catch(move);
        });
        expect(outcomes).toEqual(["succeeded"]);
        expect(await effects(stage)).toBe(1);
      }));
  });

  describe.concurrent("what a handler's own statement fails of spends its attempt", () => {
    it.each<{ readonly what: string; readonly text: string; readonly values?: readonly unknown[] }>([
      { what: "that breaks a constraint", text: "insert into public.effects (job) values (null)" },
      { what: "that is wrong", text: "selec" },
      {
        what: "that the server stops, as it takes too long",
        text: "select set_config('statement_timeout', '50', true), pg_sleep(0); select pg_sleep(5)",
      },
      { what: "with a value that cannot be sent", text: "select $1::text", values: [circular()] },
      {
        what: "that is refused when it commits",
        text: "create table public.late (id int unique deferrable initially deferred); insert into public.late values (1), (1)",
      },
    ])("$what", ({ text, values = [] }) =>
      scene(async ({ stage, run }) => {
        const { outcomes } = await run((ctx) =>
          ctx.transaction(async (tx) => {
            await addEffect(tx, ctx);
            await tx.query(text, values);
          }),
        );
        expect(outcomes).toEqual(["failed"]);
        expect(await effects(stage)).toBe(0);
      }),
    );

    it("where it goes on after it, in a transaction that the server has given up", () =>
      scene(async ({ run }) => {
        const { outcomes } = await run((ctx) => ctx.transaction((tx) => tx.query("selec", []).catch(() => {})));
        expect(outcomes).toEqual(["failed"]);
      }));
  });
});

function circular(): object {
  const value: { self?: unknown } = {};
  value.self = value;
  return value;
}
