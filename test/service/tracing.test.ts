import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";
import { temporaryFolder } from "../support/temporary-folder.js";
import { ServiceProcess, serve } from "./service.js";

interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parent?: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}

const SETUP = "test/fixtures/otel.mjs";
const TRACE = "0af7651916cd43dd8448eb211c80319c";
const HEADER = { traceparent: `00-${TRACE}-b7ad6b7169203331-01` };
const ROLES = ["--components", "api,worker,maintenance"];

async function finished(address: string, job: string): Promise<void> {
  const response = await fetch(`${address}/v1/jobs/${job}?wait=30s`);
  expect(await response.json()).toMatchObject({ state: "succeeded" });
}

describeOn("embedded18", () => {
  test.each([
    ["the configuration names", ["--tracing-setup", SETUP], {}],
    ["Node was told to import", [], { NODE_OPTIONS: `--import ./${SETUP}` }],
  ])(
    "pawl serve follows requests, enqueues and attempts with the OpenTelemetry that %s, and sends all of it before it ends",
    {
      timeout: 120_000,
    },
    async (_, args, env) => {
      await using database = await migratedDatabase();
      using folder = temporaryFolder();
      mkdirSync(folder.path);
      // What `task` makes, without a package to import it from in a folder of nowhere.
      writeFileSync(join(folder.path, "tasks.mjs"), 'export const greet = { name: "greet", handler: () => "hello", options: {} };');
      const spans = join(folder.path, "spans.jsonl");
      const started = [...ROLES, "--tasks", join(folder.path, "tasks.mjs"), ...args];
      await using service = serve(database.url, started, { ...env, SPANS: spans });
      const address = await service.up();
      await finished(address, await ServiceProcess.enqueue(address, "greet", {}, HEADER));
      service.signal("SIGTERM");
      expect(await service.exit()).toBe(0);
      const told = readFileSync(spans, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Span)
        .filter(({ traceId }) => traceId === TRACE);
      const [request, enqueue, attempt] = ["POST /v1/jobs", "enqueue greet", "attempt greet"].map((name) => told.find((span) => span.name === name));
      expect([request?.parent, enqueue?.parent, attempt?.parent]).toEqual(["b7ad6b7169203331", request?.spanId, enqueue?.spanId]);
      expect(attempt?.attributes).toMatchObject({ "pawl.outcome": "succeeded" });
    },
  );

  test("pawl serve says what is wrong with a set-up that sets nothing up", { timeout: 120_000 }, async () => {
    await using database = await migratedDatabase();
    using folder = temporaryFolder();
    mkdirSync(folder.path);
    const setup = join(folder.path, "otel.mjs");
    writeFileSync(setup, "export {};");
    await using service = serve(database.url, ["--tracing-setup", setup]);
    expect(await service.line(/registers no tracer provider/)).toContain(setup);
    expect(await service.exit()).toBe(78);
  });
});
