import { mkdirSync } from "node:fs";
import { expect, test } from "vitest";
import { readConfiguration } from "../../packages/server/src/config/read.js";
import { startService } from "../../packages/server/src/run/service.js";
import { temporaryFolder } from "../support/temporary-folder.js";

test("a worker of some queues carries out bulk operations, too", { timeout: 60_000 }, async () => {
  using folder = temporaryFolder();
  mkdirSync(folder.path);
  const flags = { "store.url": "memory:", listen: "127.0.0.1:0", "worker.queues": "mail" };
  const service = await startService(await readConfiguration({ flags, env: {}, folder: folder.path }), { env: {}, writeLine: () => {} });
  try {
    await service.pawl.enqueueMany("send", [1, 2, 3], { queue: "mail", delay: "1h" });
    const response = await fetch(`${service.address}/v1/bulk`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ verb: "cancel", filter: { task: "send" } }),
    });
    const { id } = (await response.json()) as { id: string };
    expect(await service.pawl.jobs.wait(id, "30s")).toMatchObject({ state: "succeeded", output: { changed: 3 } });
  } finally {
    await service.stop();
  }
});
