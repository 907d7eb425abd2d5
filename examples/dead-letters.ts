/**
 * A job that can never succeed, or has used up its retries, is dead: kept, listed and counted, until it is redriven (as
 * it was, or with its input mended) or deleted.
 *
 *   node --import tsx examples/dead-letters.ts
 */
import { NonRetryable, open, task } from "pawl";

const pay = task<{ amount: string }, number>("invoice.pay", { retry: ["10ms"] }, ({ amount }, { attempt }) => {
  if (amount === "flaky") throw new Error(`no answer at attempt ${attempt}`);
  if (!/^\d+$/.test(amount)) throw new NonRetryable(`${amount} is not an amount`);
  return Number(amount);
});

const pawl = await open(process.argv[2] ?? "./data", { tasks: [pay] });
await pawl.work();

const batch = await pawl.enqueueMany(pay, [{ amount: "12,50" }, { amount: "7,00" }, { amount: "flaky" }, { amount: "8" }]);
for (const job of batch) await pawl.jobs.wait(job);

const { items: jobs } = await pawl.dead.list({ task: pay.name });
for (const { input, attempts, failure } of [...jobs].reverse()) {
  console.log(`${JSON.stringify(input)} is dead after ${attempts}: ${failure?.message}`);
}

// All that died of bad amounts, mended, as a trickle: one every 20 ms.
const report = await pawl.dead.redrive(
  { task: pay.name, failure: "NonRetryable" },
  { pace: "20ms", edit: (input) => ({ amount: (input as { amount: string }).amount.replace(",", "") }) },
);
console.log(`redriven: ${report.changed}`);
console.log(`paid: ${await batch[0]?.result()} and ${await batch[1]?.result()}`);

const flaky = batch[2];
for (const { outcome, failure } of (await flaky?.history())?.items ?? []) console.log(`${outcome}: ${failure?.message}`);
await flaky?.delete();
console.log(`still dead: ${await pawl.dead.count({ task: pay.name })}`);

await pawl.close();
