/**
 * A job can wait for others. If one of those dies it dies too, unless told to run anyway, or to go on waiting for a redrive.
 *
 *   node --import tsx examples/dependencies.ts
 */
import { NonRetryable, open, task } from "pawl";

const page = task<{ page: number; missing?: boolean }, number>("report.page", ({ page, missing }) => {
  if (missing) throw new NonRetryable(`page ${page} is missing`);
  return page;
});
const bind = task<{ pages: readonly string[] }, string>("report.bind", async ({ pages }) => {
  // What the others came to is in their outputs.
  const done = await Promise.all(pages.map((id) => pawl.jobs.get(id)));
  return `bound ${done.map(({ state, output }) => (state === "succeeded" ? output : state)).join(", ")}`;
});

const pawl = await open(process.argv[2] ?? "./data", { tasks: [page, bind] });

async function makeReport(inputs: readonly { page: number; missing?: boolean }[], onDependencyDeath: "die" | "run" | "wait") {
  const pages = await pawl.enqueueMany(page, inputs);
  const report = await pawl.enqueue(bind, { pages: pages.map(({ id }) => id) }, { dependsOn: pages, onDependencyDeath });
  return { pages, report };
}

const whole = await makeReport([{ page: 1 }, { page: 2 }, { page: 3 }], "die");
console.log(`before there is a worker: ${(await whole.report.get()).state}`);
await pawl.work();
console.log(await whole.report.result());

const missing = [{ page: 1 }, { page: 2, missing: true }];
const strict = await makeReport(missing, "die");
console.log(`die: ${(await pawl.jobs.wait(strict.report)).failure?.kind}`);
const anyway = await makeReport(missing, "run");
console.log(`run: ${await anyway.report.result()}`);

// One that waits goes on when the dead one was redriven, here with its input mended.
const waiting = await makeReport(missing, "wait");
for (const one of waiting.pages) {
  if ((await pawl.jobs.wait(one)).state === "dead") await one.redrive({ input: { page: 2 } });
}
console.log(`wait: ${await waiting.report.result()}`);

await pawl.close();
