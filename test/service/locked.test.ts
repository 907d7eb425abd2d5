import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { open } from "../../packages/pawl/src/index.js";
import { serviceOf } from "../../packages/pawl/src/service.js";
import { freshDatabase } from "../support/servers/servers.js";
import { ServiceProcess, serve } from "./service.js";

test("S50: an API without the master keys of its store says so at its start, and a worker is refused", { timeout: 120_000 }, async () => {
  await using database = await freshDatabase();
  await using pawl = await open(database.url, { allowUnknownTasks: true, encryption: { masterKeys: [randomBytes(32).toString("base64")] } });
  const job = await pawl.enqueue("charge", { card: "1234" });
  const [used] = await serviceOf(pawl).encryption.status();

  await using api = serve(database.url, ["--components", "api"]);
  const address = await api.up();
  const line = await api.line(/^encryption +/);
  expect(line).toContain(used?.master);
  expect(line).toContain("what is enqueued here is stored plain");
  expect(await (await fetch(`${address}/v1/jobs/${job.id}`)).json()).toMatchObject({ input: "(encrypted)", encrypted: true });

  await using worker = serve(database.url);
  expect(await worker.exit()).not.toBe(0);
  expect(worker.lines.join("\n")).toContain("there is no master key to open them with");

  const plain = await ServiceProcess.enqueue(address, "charge", { card: "5678" });
  expect(await pawl.jobs.get(plain)).toMatchObject({ input: { card: "5678" } });
});

test("a service whose master key does not fit the data keys of its store is refused at its start", { timeout: 120_000 }, async () => {
  await using database = await freshDatabase();
  const good = randomBytes(32).toString("base64");
  await using pawl = await open(database.url, { allowUnknownTasks: true, encryption: { masterKeys: [good] } });
  await pawl.enqueue("charge", { card: "1234" });
  const [used] = await serviceOf(pawl).encryption.status();

  const env = { WRONG: randomBytes(32).toString("base64"), GOOD: good };
  for (const roles of ["api", "api,worker,maintenance"]) {
    await using service = serve(database.url, ["--components", roles, "--encryption-master-keys", "env:WRONG"], env);
    expect(await service.exit(), service.lines.join("\n")).toBe(78);
    const output = service.lines.join("\n");
    expect(output).toContain("--encryption-master-keys: these keys do not unwrap 1 data keys of the store");
    expect(output).toContain(used?.master);
    expect(output).not.toContain(env.WRONG);
  }
  await using service = serve(database.url, ["--encryption-master-keys", "env:WRONG,env:GOOD"], env);
  await ServiceProcess.enqueue(await service.up(), "charge", { card: "5678" });
});
