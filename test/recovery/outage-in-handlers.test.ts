import { describe, expect, it } from "vitest";
import { type AnyTask, type Context, type Job, open, type Transaction, task } from "../../packages/pawl/src/index.js";
import { proxiedFixture } from "../support/fixtures/fresh-fixture.js";
import { type ProcessFixture, STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import { describeOn } from "../support/servers/servers.js";
import type { TcpProxy } from "../support/servers/tcp-proxy.js";

interface OutageCase {
  readonly fixture: ProcessFixture;
  readonly proxy: TcpProxy;
  /** runs the handler once, with a single attempt, and answers when its job is over */
  run(handler: (ctx: Context) => Promise<unknown>): Promise<{ readonly job: Job; readonly outcomes: readonly string[] }>;
}

/** A worker of this process, which reaches its store through a wire that can be cut. */
async function withOutageCase(work: (outageCase: OutageCase) => Promise<void>): Promise<void> {
  const proxied = await proxiedFixture();
  await using fixture = proxied.fixture;
  const { proxy } = proxied;
  await work({
    fixture,
    proxy,
    async run(handler) {
      const only: AnyTask = task("only", { retry: 0 }, (_: unknown, ctx) => handler(ctx));
      await using pawl = await open(fixture.url, { ...STEADY_LEASES.open, tasks: [only] });
      await pawl.work(STEADY_LEASES.work);
      const job = await pawl.enqueue(only);
      await fixture.drained();
      return { job, outcomes: await fixture.history(job.id) };
    },
  });
}

const addEffect = (tx: Transaction, ctx: Context) => tx.query("insert into public.effects (job) values ($1)", [ctx.job]);
const effects = (fixture: ProcessFixture) => fixture.one<number>("select count(*)::int from public.effects");
/** Ends the connection of a transaction from elsewhere, as an operator, a failover or a server that restarts does. */
async function terminate(fixture: ProcessFixture, tx: Transaction): Promise<void> {
  const [row] = (await tx.query("select pg_backend_pid() as pid", [])).rows as [{ pid: number }];
  await fixture.rows("select pg_terminate_backend($1)", [row.pid]);
}

const NOT_COUNTED = ["snoozed", "succeeded"];

describeOn("embedded18", () => {
  describe.concurrent("a connection that is lost under a handler spends no attempt", () => {
    it("while it looks for what `ctx.once` recorded", () =>
      withOutageCase(async ({ proxy, run }) => {
        let tries = 0;
        const { outcomes } = await run(async (ctx) => {
          const lost = ++tries === 1 ? proxy.loseAnswer(/pawl_recall/) : undefined;
          await ctx.once("effect", () => 1).finally(() => lost);
        });
        expect(outcomes).toEqual(NOT_COUNTED);
      }));

    it("after `ctx.once` wrote its record: the next attempt finds it, and its effect happens once", () =>
      withOutageCase(async ({ proxy, run }) => {
        let tries = 0;
        let happened = 0;
        const { outcomes } = await run(async (ctx) => {
          if (++tries === 1) void proxy.loseAnswer(/pawl_record/);
          await ctx.once("effect", () => ++happened);
        });
        expect(outcomes).toEqual(NOT_COUNTED);
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
      withOutageCase(async ({ fixture, proxy, run }) => {
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
        expect(outcomes).toEqual(NOT_COUNTED);
        expect(await effects(fixture)).toBe(1);
      }),
    );

    it("that the server ends while its transaction is idle", () =>
      withOutageCase(async ({ fixture, run }) => {
        let tries = 0;
        const { outcomes } = await run((ctx) =>
          ctx.transaction(async (tx) => {
            await addEffect(tx, ctx);
            if (++tries === 1) await terminate(fixture, tx);
            await addEffect(tx, ctx);
          }),
        );
        expect(outcomes).toEqual(NOT_COUNTED);
        expect(await effects(fixture)).toBe(2);
      }));

    it("before its transaction begins, for a while", () =>
      withOutageCase(async ({ fixture, proxy, run }) => {
        let tries = 0;
        const { outcomes } = await run(async (ctx) => {
          if (++tries === 1) {
            await proxy.refuse();
            setTimeout(() => void proxy.accept(), 500);
          }
          await ctx.transaction((tx) => addEffect(tx, ctx));
        });
        expect(outcomes).toEqual(NOT_COUNTED);
        expect(await effects(fixture)).toBe(1);
      }));

    it("before it commits: nothing of it was done, and the next attempt does it once", () =>
      withOutageCase(async ({ fixture, proxy, run }) => {
        let tries = 0;
        const { outcomes } = await run((ctx) =>
          ctx.transaction(async (tx) => {
            await addEffect(tx, ctx);
            if (++tries === 1) void proxy.stopAt({ at: /commit\0/, when: "before" }).then(() => proxy.cut());
          }),
        );
        expect(outcomes).toEqual(NOT_COUNTED);
        expect(await effects(fixture)).toBe(1);
      }));
  });

  describe.concurrent("a commit whose answer is lost", () => {
    it("has happened: its job has succeeded and is not run again", () =>
      withOutageCase(async ({ fixture, proxy, run }) => {
        const { outcomes } = await run((ctx) =>
          ctx.transaction(async (tx) => {
            await addEffect(tx, ctx);
            void proxy.loseAnswer(/commit\0/);
          }),
        );
        expect(outcomes).toEqual(["succeeded"]);
        expect(await effects(fixture)).toBe(1);
      }));

    it("is not repeated by a handler that tries it again in the same attempt", () =>
      withOutageCase(async ({ fixture, proxy, run }) => {
        const { outcomes } = await run(async (ctx) => {
          void proxy.loseAnswer(/commit\0/);
          const move = () => ctx.transaction((tx) => addEffect(tx, ctx));
          await move().catch(move);
        });
        expect(outcomes).toEqual(["succeeded"]);
        expect(await effects(fixture)).toBe(1);
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
      withOutageCase(async ({ fixture, run }) => {
        const { outcomes } = await run((ctx) =>
          ctx.transaction(async (tx) => {
            await addEffect(tx, ctx);
            await tx.query(text, values);
          }),
        );
        expect(outcomes).toEqual(["failed"]);
        expect(await effects(fixture)).toBe(0);
      }),
    );

    it("where it goes on after it, in a transaction that the server has given up", () =>
      withOutageCase(async ({ run }) => {
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
