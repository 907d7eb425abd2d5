import { describe, expect, test } from "vitest";
import { open } from "../../packages/pawl/src/index.js";
import { builtPawl, NodeProcess } from "../support/processes/child-process.js";
import { runPawl, runPawlWith } from "../support/run-cli.js";
import { describeOn, freshDatabase } from "../support/servers/servers.js";
import { temporaryFolder } from "../support/temporary-folder.js";

/** The same walk, wherever the jobs are. */
async function walk(store: string): Promise<void> {
  const at = (...argv: string[]) => runPawl(...argv, "--store", store);
  const enqueued = await at("enqueue", "mail.send", '{"to":"ana"}', "--queue", "mail", "--delay", "1h", "--tag", "vip");
  const id = enqueued.out.trim();
  expect([enqueued.exit, enqueued.err, id]).toEqual([0, "", expect.stringMatching(/^[0-9a-f-]{36}$/)]);
  expect((await at("jobs", "list", "--tag", "vip", "--state", "scheduled")).out).toMatch(new RegExp(`^${id}\tscheduled\tmail\\.send\tmail\t`));
  expect(JSON.parse((await at("jobs", "show", id, "--json")).out)).toMatchObject({
    job: { id, input: { to: "ana" } },
    explanation: { reasons: [{ kind: "due" }, {}] },
  });
  expect((await at("jobs", "promote", id)).out).toBe(`${id}  scheduled → ready\n`);
  expect((await at("jobs", "explain", id)).out).toMatch(/no (live )?worker/i);
  expect((await at("queues", "pause", "mail")).out).toBe("mail paused\n");
  expect((await at("queues", "list")).out).toMatch(/^mail\tpaused\t1\t/);
  expect((await at("queues", "resume", "mail")).exit).toBe(0);
  expect((await at("workers")).exit).toBe(0);
  expect((await at("dead")).out).toBe("");
  expect((await at("doctor", "--json")).exit).toBe(5);
  expect((await at("jobs", "cancel", id, "--yes")).out).toBe(`${id}  ready → cancelled\n`);
  expect((await at("jobs", "delete", id)).exit).toBe(4);
  expect((await at("jobs", "show", "0199ffff-ffff-7fff-bfff-ffffffffffff")).exit).toBe(3);
}

describe("the command line", () => {
  test("works on a folder, and starts no maintenance there", { timeout: 180_000 }, async () => {
    using data = temporaryFolder();
    // Kept open, so that the server of the folder is started once.
    await using kept = await open(data.path, { maintenance: false });
    expect((await kept.info()).place).toBe(data.path);
    await walk(data.path);
    const delayed = (await runPawl("enqueue", "late", "--delay", "1ms", "--store", data.path)).out.trim();
    expect((await runPawl("jobs", "list", "--task", "late", "--store", data.path)).out).toMatch(new RegExp(`^${delayed}\tscheduled\t`));
  });

  test("works on a server", { timeout: 180_000 }, async () => {
    await using server = new NodeProcess(builtPawl(), ["serve", "--store", "memory:", "--listen", "127.0.0.1:0"]);
    const [, url = ""] = /listening: (http[^\s"]+)/.exec(await server.line(/listening: /)) ?? [];
    await server.line(/engine: /);
    await walk(url);
    // Without keepAlive between its looks at the job of the service, the process ends there: exit code 13, and not a word.
    await runPawl("enqueue", "mail.send", "--tenant", "acme", "--store", url);
    expect(await runPawl("tenants", "purge", "acme", "--yes", "--store", url)).toMatchObject({
      exit: 0,
      out: expect.stringMatching(/^acme: 1 job and \d+ other rows? deleted/),
    });
  });

  test("makes no store where there is none, and says what to name", async () => {
    using data = temporaryFolder();
    const { exit, err } = await runPawl("jobs", "list", "--store", data.path);
    expect([exit, err]).toEqual([1, `pawl: there is no store in ${data.path}\n      name one with --store or PAWL_STORE; pawl migrate makes one\n`]);
    expect((await runPawl("migrate", "--store", data.path)).out).toMatch(/^migrated to schema \d+\n$/);
    expect((await runPawlWith({ PAWL_STORE: data.path }, "jobs", "list")).exit).toBe(0);
  });

  test.each([
    [["--store", "mysql://me:hunter2@db/x"], {}, "--store: mysql:// is no store Pawl knows"],
    [[], { PAWL_STORE: "redis://db" }, "PAWL_STORE: redis:// is no store Pawl knows"],
  ])("says which flag or variable names no store that it knows, and what it could be: %j %j", async (flags, env, says) => {
    const { exit, err } = await runPawlWith(env, "queues", ...flags);
    expect([exit, err]).toEqual([
      2,
      `pawl: ${says}\n      give a folder ("./data"), "postgres://user@host/database", or a server ("https://host")\n`,
    ]);
  });

  test("tells of a store it cannot reach in one line, without its password", { timeout: 180_000 }, async () => {
    const { exit, err } = await runPawlWith({ PAWL_STORE: "postgres://pawl:hunter2@127.0.0.1:1/x" }, "jobs", "list", "--json");
    expect(exit).toBe(1);
    expect(JSON.parse(err.trim().split("\n").at(-1) ?? "")).toMatchObject({ error: { code: "store_unreachable" } });
    expect(err).not.toContain("hunter2");
  });

  // Without keepAlive in the client's rests between its tries, the process ends there: exit code 13, and not a word.
  test("tells of a server that is not there", { timeout: 180_000 }, async () => {
    const { exit, err } = await runPawl("jobs", "list", "--store", "http://127.0.0.1:1", "--json");
    expect([exit, JSON.parse(err)]).toMatchObject([
      1,
      { error: { code: "store_unreachable", message: expect.stringContaining("http://127.0.0.1:1") } },
    ]);
  });
});

describeOn("embedded18", () => {
  test("the command line works on a database", { timeout: 120_000 }, async () => {
    await using database = await freshDatabase();
    expect((await runPawl("jobs", "list", "--store", database.url)).err).toMatch(/run pawl migrate/);
    expect((await runPawl("migrate", "--store", database.url)).exit).toBe(0);
    await walk(database.url);
  });
});
