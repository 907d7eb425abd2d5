import { open, task } from "pawl";
const parent = task("parent", async () => { await new Promise(r => setTimeout(r, 300)); });
const child = task("child", () => {});
const pawl = await open("/tmp/depdata", { tasks: [parent, child] });
await pawl.work();
let settled = 0;
pawl.on("attempt.settled", (e) => { if (e.lane.task === "parent") settled = performance.now(); });
pawl.on("attempt.started", (e) => { if (e.lane.task === "child") console.log("child started", Math.round(performance.now() - settled), "ms after its last parent"); });
for (let i = 0; i < 8; i++) {
  const parents = await pawl.enqueueMany(parent, [1, 2, 3]);
  const job = await pawl.enqueue(child, undefined, { dependsOn: parents });
  await job.result();
  if (i >= 4) await new Promise(r => setTimeout(r, 2500));
}
await pawl.close();
