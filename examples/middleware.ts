/**
 * Middleware goes around every attempt, the first one outermost. Three that compose: a context that any code can reach,
 * the time an attempt took, and errors of an API turned into what Pawl should do about them.
 *
 *   node --import tsx examples/middleware.ts
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { type Middleware, NonRetryable, open, RetryAfter, task } from "pawl";

/** Context: code far below the handler logs with the job it works for, without being told of it. */
const current = new AsyncLocalStorage<{ readonly label: string }>();
const log = (text: string) => console.log(`[${current.getStore()?.label ?? "-"}] ${text}`);

const context: Middleware = (ctx, next) => current.run({ label: `${ctx.task} ${ctx.tenant} #${ctx.attempt}` }, next);

/** Timing: sees the outcome of everything inside it, and passes it on. */
const timing: Middleware = async (_ctx, next) => {
  const start = performance.now();
  try {
    return await next();
  } finally {
    log(`took ${Math.round(performance.now() - start)} ms`);
  }
};

/** Error mapping: what the API says decides whether trying again makes sense, and when. */
class HttpError extends Error {
  constructor(readonly status: number) {
    super(`HTTP ${status}`);
  }
}

const errorMapping: Middleware = async (_ctx, next) => {
  try {
    return await next();
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    log(`answered ${error.status}`);
    if (error.status === 429) throw new RetryAfter("50ms", "the API asked us to slow down", { cause: error });
    if (error.status < 500) throw new NonRetryable("the API will never take this", { cause: error });
    throw error;
  }
};

/** An API that is busy the first time, and refuses one customer. */
async function callApi(customer: string, attempt: number): Promise<string> {
  log(`calling the API for ${customer}`);
  if (customer === "nobody") throw new HttpError(404);
  if (attempt === 1) throw new HttpError(429);
  return `synced ${customer}`;
}

const sync = task<{ customer: string }, string>("customer.sync", ({ customer }, ctx) => callApi(customer, ctx.attempt));

const pawl = await open(process.argv[2] ?? "./data", { tasks: [sync] });
await pawl.work({ middleware: [context, timing, errorMapping] });

const good = await pawl.enqueue(sync, { customer: "ada" }, { tenant: "acme" });
console.log(await good.result());
const bad = await pawl.enqueue(sync, { customer: "nobody" }, { tenant: "acme" });
await pawl.jobs.wait(bad);
console.log((await bad.get()).failure?.message);

await pawl.close();
