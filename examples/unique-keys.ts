/**
 * One job per tenant, task and key, for as long as you say; and what a second one gets.
 *
 *   node --import tsx examples/unique-keys.ts
 */
import { isPawlError, open, task } from "pawl";

const remind = task<{ items: number }, string>("cart.remind", ({ items }) => `reminded of ${items} items`);

const pawl = await open(process.argv[2] ?? "./data", { tasks: [remind] });

// By default a key is held until its job has finished, and a second enqueue answers with the first job.
const first = await pawl.enqueue(remind, { items: 1 }, { unique: "cart-42", delay: "1h" });
const second = await pawl.enqueue(remind, { items: 2 }, { unique: "cart-42", delay: "1h" });
console.log(`second: ${second.enqueued}, ${second.id === first.id ? "the same job" : "another job"}`);

// Debounce: the newcomer takes the place of one that has not started.
const newer = await pawl.enqueue(remind, { items: 3 }, { unique: { key: "cart-42", onConflict: "replace" } });
console.log(`newer: ${newer.enqueued}, replaced ${newer.replaced === first.id ? "the first" : "nothing"}`);
console.log(`first: ${(await first.get()).state}`);

// Or be told.
try {
  await pawl.enqueue(remind, { items: 4 }, { unique: { key: "cart-42", onConflict: "reject" } });
} catch (error) {
  if (!isPawlError(error, "unique_key_taken")) throw error;
  console.log(`${error.code}: held by ${error.details.job === newer.id ? "the newer one" : "another"}`);
}

// Finished, the key is free again; `for: "1h"` would hold it for an hour from its enqueue, whatever becomes of it.
await pawl.work();
console.log(await newer.result());
const again = await pawl.enqueue(remind, { items: 5 }, { unique: "cart-42" });
console.log(`again: ${again.enqueued}`);
await again.result();

await pawl.close();
