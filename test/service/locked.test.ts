import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { open } from "../../packages/pawl/src/index.js";
import { serviceOf } from "../../packages/pawl/src/service.js";
import { builtPawl, NodeProcess } from "../support/processes/child-process.js";
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

test("a service whose pepper is not the one that its keys were made with is refused by `check` and at its start", { timeout: 180_000 }, async () => {
  await using database = await freshDatabase();
  const env = { WRONG: randomBytes(32).toString("base64"), GOOD: randomBytes(32).toString("base64") };
  await using pawl = await open(database.url, { apiKeys: { pepper: env.GOOD } });
  const grants = [{ role: "viewer" }] as const;
  const { secret } = await serviceOf(pawl).apiKeys.create({ name: "first", grants });
  const revoked = await serviceOf(pawl).apiKeys.create({ name: "second", grants });
  await serviceOf(pawl).apiKeys.revoke(revoked.key.id);
  const check = async (pepper: string) => {
    const args = ["check", "--store", database.url, "--auth", "keys", "--api-keys-pepper", pepper];
    await using child = new NodeProcess(builtPawl(), args, { ...process.env, ...env });
    return { exit: await child.exit(), output: child.lines.join("\n") };
  };

  await using service = serve(database.url, ["--auth", "keys", "--api-keys-pepper", "env:WRONG"], env);
  expect(await service.exit(), service.lines.join("\n")).toBe(78);
  const checked = await check("env:WRONG");
  expect(checked.exit, checked.output).toBe(78);
  for (const output of [service.lines.join("\n"), checked.output]) {
    expect(output).toContain("--api-keys-pepper: API keys of the store were made with another pepper (1), and none with this one");
    expect(output).not.toContain(env.WRONG);
  }

  expect(await check("env:GOOD")).toMatchObject({ exit: 0, output: "the configuration is good" });
  await using good = serve(database.url, ["--auth", "keys", "--api-keys-pepper", "env:GOOD"], env);
  const answer = await fetch(`${await good.up()}/v1/counts`, { headers: { authorization: `Bearer ${secret}` } });
  expect(answer.status).toBe(200);

  // An operator who has lost the pepper makes a key with a new one: then it is no mistake any more.
  await using other = await open(database.url, { apiKeys: { pepper: env.WRONG } });
  await serviceOf(other).apiKeys.create({ name: "third", grants });
  await using anew = serve(database.url, ["--auth", "keys", "--api-keys-pepper", "env:WRONG"], env);
  await anew.up();
  expect(await anew.line(/^keys +/)).toContain("1 API key made with another pepper will be refused");
});
