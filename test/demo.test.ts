import { describe, expect, test } from "vitest";
import { builtPawl, NodeProcess } from "./support/processes/child-process.js";
import { temporaryFolder } from "./support/temporary-folder.js";

const pawl = (...args: string[]) => new NodeProcess(builtPawl(), args);

describe.concurrent("npm start", () => {
  test("shows every kind of work, on Ctrl-C finishes what runs, and picks up where it was when started again", { timeout: 120_000 }, async () => {
    using data = temporaryFolder();
    {
      await using first = pawl("demo", data.path);
      await first.line(new RegExp(`^data +${data.path}$`));
      await first.line(/^durability +what is enqueued survives a crash/);
      const api = (await first.line(/^api +http:/)).replace(/^api +/, "").replace("/v1/docs", "");
      expect((await fetch(`${api}/readyz`)).status).toBe(200);
      expect((await fetch(`${api}/v1/docs`)).headers.get("content-type")).toContain("text/html");
      const greeting = await fetch(`${api}/v1/jobs`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ task: "greet", input: { who: "you" } }),
      });
      const { id } = (await greeting.json()) as { id: string };
      const ended = await fetch(`${api}/v1/jobs/${id}?wait=30000`);
      expect(await ended.json()).toMatchObject({ state: "succeeded", output: "hello you" });
      await first.line(/^found +nothing yet/);
      await first.line(/report\.page +3 jobs enqueued/);
      await first.line(/cart\.remind +1 job enqueued/);
      await first.line(/mail\.welcome +succeeded in/);
      await first.line(/payment\.charge +attempt 1 failed: the bank did not answer in time; again in 1\.0 s/);
      await first.line(/payment\.charge +attempt 2 failed/);
      await first.line(/report\.finish +succeeded/);
      await first.line(/webhook\.deliver +dead after 3 attempts: 503/);
      await first.line(/video\.encode +succeeded/);
      first.interrupt();
      await first.line(/^stopping: /);
      expect(await first.exit()).toBe(0);
      expect(first.lines.at(-1)).toMatch(/^stopped +\d+ succeeded, \d+ died; \d+ unfinished jobs? \(.*\d+ scheduled.*\) left$/);
    }
    await using second = pawl("demo", data.path);
    expect(await second.line(/^found/)).toMatch(/^found +[1-9]\d* unfinished jobs? \(.*\d+ scheduled.*\), [1-9]\d* succeeded, [1-9]\d* dead$/);
    // A reminder of the first run: this one's are not due for longer.
    await second.line(/cart\.remind +succeeded/);
    second.interrupt();
    expect(await second.exit()).toBe(0);
  });

  test("on PGlite says that power loss is not covered; a second one is refused, and told who has the folder", async () => {
    using data = temporaryFolder();
    await using first = pawl("demo", data.path, "--engine", "pglite");
    await first.line(/^durability +what is enqueued survives a crash, but power loss is not covered$/);
    await using second = pawl("demo", data.path, "--engine", "pglite");
    expect(await second.exit()).toBe(1);
    expect(second.lines.at(-1)).toMatch(new RegExp(`^pawl: ${data.path} is in use by process ${first.pid}\\.`));
    first.interrupt();
    expect(await first.exit()).toBe(0);
  });

  test("exits at once on a second Ctrl-C", { timeout: 60_000 }, async () => {
    await using child = pawl("demo", "memory:");
    await child.line(/video\.encode +1 job enqueued/);
    child.interrupt();
    await child.line(/^stopping/);
    // The same one, passed on by npm, does not count: only one some 300 ms later does, so this asks until it is heard.
    const asking = setInterval(() => child.interrupt(), 50);
    expect(await child.exit()).toBe(130);
    clearInterval(asking);
    expect(child.lines.filter((line) => line.startsWith("stopped"))).toEqual([]);
  });

  test.each([
    [
      "a server that is not there",
      "postgres://pawl:hunter2@127.0.0.1:1/x",
      /^pawl: the store at postgres:\/\/127.0.0.1:1\/x cannot be reached: .*ECONNREFUSED/m,
      1,
    ],
    ["a store nobody knows", "redis://localhost", /^pawl: redis:\/\/localhost is not a store Pawl knows$/m, 2],
    ["a folder that is not ours", "packages", /^pawl: .*\/packages cannot hold a store: it holds .*, which Pawl did not make/m, 1],
  ])("says in one line what is wrong with %s", { timeout: 60_000 }, async (_, store, says, code) => {
    await using child = pawl("demo", store);
    expect(await child.exit()).toBe(code);
    expect(child.lines.join("\n")).toMatch(says);
    expect(child.lines.join("\n")).not.toContain("hunter2");
    expect(child.lines.length).toBeLessThanOrEqual(2);
  });
});
