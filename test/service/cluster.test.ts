import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { open } from "pawl";
import { describe, expect, test } from "vitest";
import { onceOrAgain } from "../support/again.js";
import { eventually } from "../support/eventually.js";
import { describeOn, migratedDatabase, type ServerName } from "../support/servers/servers.js";
import { temporaryFolder } from "../support/temporary-folder.js";
import { ServiceProcess, serve } from "./service.js";

const TASKS = `
  const task = (name, handler) => ({ name, options: {}, schema: undefined, handler });
  export const greet = task("greet", ({ who }) => "hello " + who);
`;

function taskFile(folder: string): string {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "greet.mjs");
  writeFileSync(file, TASKS);
  return file;
}

for (const server of onceOrAgain<ServerName>(["embedded18", "debian15"])) {
  describeOn(server, () => {
    test("three processes with a role each are one service, on one Postgres", { timeout: 180_000 }, async () => {
      using folder = temporaryFolder();
      await using database = await migratedDatabase(server);
      await using api = serve(database.url, ["--components", "api"]);
      const address = await api.up();
      await using maintenance = new ServiceProcess("serve", ["--components", "maintenance"], { PAWL_STORE: database.url });
      await using worker = serve(database.url, ["--components", "worker", "--tasks", taskFile(folder.path)]);
      // Delayed, so that it needs all three: one takes it, one promotes it, one runs it.
      const response = await fetch(`${address}/v1/jobs`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ task: "greet", input: { who: "you" }, delay: "1s" }),
      });
      const { id } = (await response.json()) as { id: string };
      const health = await worker.up();
      const job = await eventually(
        () => "the job's output",
        async () => {
          const view = (await (await fetch(`${address}/v1/jobs/${id}`)).json()) as { state: string; output?: unknown };
          return view.state === "succeeded" && view;
        },
      );
      expect(job).toMatchObject({ output: "hello you" });
      // A process without an API tells of its health, and of nothing else.
      expect((await fetch(`${health}/readyz`)).status).toBe(200);
      expect(await (await fetch(`${health}/metrics`)).text()).toContain("pawl_attempts_settled_total");
      expect((await fetch(`${health}/v1/jobs/${id}`)).status).toBe(404);
      for (const child of [worker, maintenance, api]) {
        child.signal("SIGTERM");
        expect(await child.exit(), child.lines.join("\n")).toBe(0);
      }
    });

    test("kill -9 of a service in the middle of traffic loses nothing that it acknowledged", { timeout: 180_000 }, async () => {
      await using database = await migratedDatabase(server);
      const acknowledged: string[] = [];
      {
        await using victim = serve(database.url, ["--components", "api,maintenance"]);
        const address = await victim.up();
        let killed = false;
        const send = async (client: number) => {
          for (let n = 0; !killed; n++) {
            try {
              acknowledged.push(await ServiceProcess.enqueue(address, "nobody.has", { client, n }));
            } catch (error) {
              if (!killed) throw error;
            }
            if (acknowledged.length >= 200 && !killed) {
              killed = true;
              victim.signal("SIGKILL");
            }
          }
        };
        await Promise.all(Array.from({ length: 8 }, (_, client) => send(client)));
        expect(await victim.exit()).toBe("SIGKILL");
      }
      await using pawl = await open(database.url, { maintenance: false });
      const found = await Promise.all(acknowledged.map((id) => pawl.jobs.get(id as never)));
      expect(found.filter((job) => job?.state !== "ready")).toEqual([]);
      expect(acknowledged.length).toBeGreaterThanOrEqual(200);
    });
  });
}

describe("a service whose store is not there", () => {
  test("lives, is not ready, and says so in the shape of every error", { timeout: 120_000 }, async () => {
    await using child = serve("postgres://nobody@127.0.0.1:1/nothing");
    const at = await child.address();
    await child.line(/^waiting +the store at postgres:\/\/127\.0\.0\.1:1\/nothing cannot be reached/);
    expect((await fetch(`${at}/livez`)).status).toBe(200);
    for (const path of ["/readyz", "/v1/jobs"]) {
      const response = await fetch(at + path);
      expect([response.status, response.headers.get("content-type"), response.headers.get("retry-after")]).toEqual([
        503,
        "application/problem+json",
        "1",
      ]);
      expect(await response.json()).toMatchObject({ code: "service_starting", status: 503 });
    }
    child.signal("SIGTERM");
    expect(await child.exit()).toBe(0);
    expect(child.lines.at(-1)).toBe("stopped     before there was a store");
  });
});
