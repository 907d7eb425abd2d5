import { setTimeout as wait } from "node:timers/promises";
import { NonRetryable, task } from "pawl";

/** The tasks of a small web shop: enough to see every way a job can go. They pretend to work by waiting. */

export const welcome = task<{ to: string }, string>("mail.welcome", { queue: "mail" }, async ({ to }, { signal }) => {
  await wait(between(60, 250), undefined, { signal });
  return `sent to ${to}`;
});

export const newsletter = task<{ issue: number; reader: number }>("mail.newsletter", { queue: "mail", priority: "low" }, async (_, { signal }) => {
  await wait(between(80, 200), undefined, { signal });
});

/** Delayed: a cart that was left is remembered later. */
export const remind = task<{ cart: number }>("cart.remind", { queue: "mail" }, async (_, { signal }) => {
  await wait(between(50, 150), undefined, { signal });
});

/** Retried: the bank does not answer the first time or two. */
export const charge = task<{ order: number; timeouts: number }, { paid: number }>(
  "payment.charge",
  { queue: "payments", priority: "high", retry: ["1s", "3s", "5s"], timeout: "10s" },
  async ({ order, timeouts }, { attempt, signal }) => {
    await wait(between(200, 600), undefined, { signal });
    if (attempt <= timeouts) throw new Error("the bank did not answer in time");
    return { paid: order };
  },
);

/** With progress. */
export const encode = task<{ video: number; seconds: number }>("video.encode", { queue: "media" }, async ({ seconds }, { progress, signal }) => {
  for (let done = 0; done < seconds; done += 0.25) {
    progress(done / seconds);
    await wait(250, undefined, { signal });
  }
  progress(1);
});

/** The one that dies: at once if the address is gone, after its retries if nobody answers there. */
export const notify = task<{ url: string; status: number }>("webhook.deliver", { retry: ["500ms", "1s"] }, async ({ url, status }, { signal }) => {
  await wait(between(100, 400), undefined, { signal });
  if (status === 410) throw new NonRetryable(`410 Gone: ${url}`);
  if (status !== 200) throw new Error(`${status} from ${url}`);
});

/** Dependencies: a report is put together when all of its pages are there. */
export const page = task<{ report: number; page: number }, { rows: number }>("report.page", async (_, { signal }) => {
  await wait(between(500, 1_800), undefined, { signal });
  return { rows: 100 };
});

export const report = task<{ report: number }>("report.finish", async (_, { signal }) => {
  await wait(between(300, 600), undefined, { signal });
});

/** For whoever looks in by the API: the same as in `examples/tasks`. */
export const greet = task<{ who: string }, string>("greet", ({ who }) => `hello ${who}`);

export const shopTasks = [greet, welcome, newsletter, remind, charge, encode, notify, page, report];

function between(min: number, max: number): number {
  return min + Math.random() * (max - min);
}
