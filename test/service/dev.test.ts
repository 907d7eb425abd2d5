import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.js";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";
import { temporaryFolder } from "../support/temporary-folder.js";
import { ServiceProcess } from "./service.js";

/** A task that ends when a file is there, and at once if it is given none. */
const module = (answer: string) => `
  import { existsSync } from "node:fs";
  const task = (name, handler) => ({ name, options: {}, schema: undefined, handler });
  export const slow = task("slow", async ({ until }) => {
    while (until && !existsSync(until)) await new Promise((resolve) => setTimeout(resolve, 20));
    return "${answer}";
  });
`;

describeOn("embedded18", () => {
  test("pawl dev loads tasks again when they change, lets what runs finish, and keeps the old ones if the new ones do not load", {
    timeout: 180_000,
  }, async () => {
    using folder = temporaryFolder();
    const tasks = join(folder.path, "tasks");
    mkdirSync(tasks, { recursive: true });
    const file = join(tasks, "slow.mjs");
    writeFileSync(file, module("old"));
    await using database = await migratedDatabase();
    await using child = new ServiceProcess("dev", [tasks], { PAWL_STORE: database.url, PAWL_LISTEN: "127.0.0.1:0" });
    const address = await child.address();
    await child.line(/^ready/);
    const outputOf = async (id: string) => ((await (await fetch(`${address}/v1/jobs/${id}`)).json()) as { output?: unknown }).output;
    const reaches = (id: string, state: string) =>
      eventually(
        () => `job ${id} is ${state}`,
        async () => ((await (await fetch(`${address}/v1/jobs/${id}`)).json()) as { state: string }).state === state,
      );

    const until = join(folder.path, "go");
    const running = await ServiceProcess.enqueue(address, "slow", { until });
    await reaches(running, "running");
    // Both are seen at one look, and one of them is none of the tasks' business.
    writeFileSync(join(tasks, "slow.test.mjs"), "// no task");
    writeFileSync(file, module("new, and longer"));
    expect(await child.line(/^reloaded/)).toMatch(/^reloaded +\S*slow\.mjs$/);
    const seen = child.lines.length;
    const next = await ServiceProcess.enqueue(address, "slow", {});
    await child.line(/slow +succeeded/, seen);
    expect(await outputOf(next)).toBe("new, and longer");
    writeFileSync(until, "");
    await reaches(running, "succeeded");
    expect(await outputOf(running), "begun by the old one, and finished by it").toBe("old");

    writeFileSync(file, "this does not parse");
    await child.line(/^pawl: .*slow\.mjs: it cannot be loaded/);
    await child.line(/^kept +the tasks there were/);
    const again = child.lines.length;
    await ServiceProcess.enqueue(address, "slow", {});
    await child.line(/slow +succeeded/, again);
    child.interrupt();
    expect(await child.exit()).toBe(0);
  });
});
