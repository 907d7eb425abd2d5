import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { nativePostgres } from "../../packages/pawl/src/store/postgres/embedded/index.js";
import { readPostmaster } from "../../packages/pawl/src/store/postgres/embedded/postmaster.js";
import { isAlive } from "../../packages/pawl/src/store/postgres/embedded/processes.js";
import { eventually } from "../support/eventually.js";
import { builtPawl, NodeProcess } from "../support/processes/child-process.js";
import { temporaryFolder } from "../support/temporary-folder.js";
import { ServiceProcess } from "./service.js";

const ENDLESS = `
  export const endless = { name: "endless", options: {}, schema: undefined, handler: () => new Promise(() => setInterval(() => {}, 1_000)) };
`;

const native = nativePostgres();

describe.skipIf(!native.ok)(`a second signal${native.ok ? "" : ` (${native.reason})`}`, () => {
  const busyService = (command: "serve" | "dev", started: RegExp) => async (data: string) => {
    const tasks = join(data, "..", "tasks");
    mkdirSync(tasks);
    writeFileSync(join(tasks, "endless.mjs"), ENDLESS);
    const service = new ServiceProcess(command, ["--store", data, "--listen", "127.0.0.1:0", "--tasks", tasks, "--shutdown-grace", "10m"]);
    const address = await service.address();
    await service.line(started);
    const job = await ServiceProcess.enqueue(address, "endless", {});
    const state = async () => ((await (await fetch(`${address}/v1/jobs/${job}`)).json()) as { state: string }).state;
    await eventually("it runs", async () => (await state()) === "running");
    return service;
  };
  const busyDemo = async (data: string) => {
    const demo = new NodeProcess(builtPawl(), ["demo", data]);
    await demo.line(/video\.encode +1 job enqueued/);
    return demo;
  };

  test.each([
    ["pawl serve", busyService("serve", /^components/)],
    ["pawl dev", busyService("dev", /^ready/)],
    ["npm start", busyDemo],
  ])("ends %s at once, and its embedded server with it", { timeout: 120_000 }, async (_, start) => {
    using data = temporaryFolder();
    await using child = await start(data.path);
    const { pid } = readPostmaster(join(data.path, "postgres")) as { pid: number };
    child.interrupt();
    await child.line(/^stopping/);
    // One within 300 ms is taken for the first, passed on by npm: so this asks until it is heard.
    const interrupts = setInterval(() => child.interrupt(), 50);
    expect(await child.exit()).toBe(130);
    clearInterval(interrupts);
    expect(child.lines.filter((line) => line.startsWith("stopped"))).toEqual([]);
    await eventually("the server is gone", () => !isAlive(pid));
  });
});
