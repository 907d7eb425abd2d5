import { type Context, open, task } from "../../../packages/pawl/src/index.js";

/** A worker whose handlers do not end, or only when they are told to: `unended-handlers.test.ts` sends it signals. */
const forever = () => new Promise<never>(() => setInterval(() => {}, 60_000));
const say = (what: string) => void process.stdout.write(`${what}\n`);

const HANDLERS: Readonly<Record<string, (ctx: Context) => Promise<void>>> = {
  async deaf() {
    say("running");
    await forever();
  },
  async "deaf in a transaction"(ctx) {
    const left = ctx.transaction(async (tx) => {
      await tx.query("select 1", []);
      say("running");
      await forever();
    });
    await left.catch(forever);
  },
  async "deaf in a statement"(ctx) {
    const left = ctx.transaction(async (tx) => {
      const slept = tx.query("select pg_sleep(600)", []);
      say("running");
      await slept;
    });
    await left.catch(forever);
  },
  async polite(ctx) {
    const aborted = new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => setTimeout(resolve, 100)));
    say("running");
    await aborted;
  },
};

const [url, handler] = process.argv.slice(2) as [string, string];
const work = task("work", (_: unknown, ctx) => HANDLERS[handler]?.(ctx));
const pawl = await open(url, { tasks: [work] });
pawl.on("worker.stopped", ({ released, unended }) => say(`stopped: ${released} given back, ${unended} go on`));
await pawl.enqueue(work);
await pawl.work({ shutdownGrace: "300ms" });
await pawl.closeOnSignal();
