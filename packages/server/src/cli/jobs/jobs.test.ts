import { task } from "pawl";
import { serviceOf } from "pawl/service";
import { describe, expect, test } from "vitest";
import { CliFixture } from "../../../../../test/support/fixtures/cli-fixture.js";
import { EXIT } from "../exit.js";

const greet = task("greet", async (input: { name: string }, ctx) => {
  ctx.log.info("hello", { name: input.name });
  return `hello ${input.name}`;
});
const fail = task("fail", { retry: 0 }, async (input: { user: number }) => {
  throw new TypeError(`no user ${input.user}`);
});
const idle = { tasks: [greet, fail] };

describe("pawl enqueue", () => {
  test("stores a job and prints its id", async () => {
    await using fixture = await CliFixture.start(idle);
    const { exit, out, err } = await fixture.run(
      "enqueue",
      "greet",
      '{"name":"ana"}',
      "--queue",
      "mail",
      "--priority",
      "high",
      "--tag",
      "a",
      "--tag",
      "b",
      "--tenant",
      "acme",
    );
    expect([exit, err]).toEqual([EXIT.done, ""]);
    expect(await fixture.pawl.jobs.get(out.trim())).toMatchObject({
      task: "greet",
      queue: "mail",
      priority: 7,
      tags: ["a", "b"],
      tenant: "acme",
      input: { name: "ana" },
    });
  });

  test("reads the input from a pipe", async () => {
    await using fixture = await CliFixture.start(idle);
    const { out } = await fixture.runWith({ input: '{"name":\n"bob"}' }, "enqueue", "greet", "--input", "-");
    expect((await fixture.pawl.jobs.get(out.trim())).input).toEqual({ name: "bob" });
  });

  test("stores many from lines, and a second run adds only what is missing", async () => {
    await using fixture = await CliFixture.start(idle);
    const lines = (count: number) => Array.from({ length: count }, (_, n) => JSON.stringify({ name: `n${n}` })).join("\n");
    const many = async (count: number) =>
      (await fixture.runWith({ input: `${lines(count)}\n\n` }, "enqueue", "greet", "--lines", "-", "--idempotency-key", "import-1", "--json")).json;
    expect(await many(3)).toMatchObject({ count: 3, created: 3, existing: 0 });
    expect(await many(5)).toMatchObject({ count: 5, created: 2, existing: 3 });
    expect((await fixture.pawl.counts()).ready).toBe(5);
  });

  test("refuses lines whose idempotency key was used for other inputs, and says how many", async () => {
    await using fixture = await CliFixture.start(idle);
    const many = (input: string, ...more: string[]) => fixture.runWith({ input }, "enqueue", "greet", "--lines", "-", ...more);
    await many('{"name":"a"}\n{"name":"b"}', "--idempotency-key", "import-1");
    const { exit, err } = await many('{"name":"a"}\n{"name":"c"}\n{"name":"d"}', "--idempotency-key", "import-1");
    expect([exit, (await fixture.pawl.counts()).ready]).toEqual([EXIT.failed, 3]);
    expect(err).toContain("idempotency key import-1 was used for other jobs: 1 line not stored, 1 stored");
    const one = await fixture.run("enqueue", "greet", '{"name":"z"}', "--idempotency-key", "import-1:0");
    expect([one.exit, one.err]).toEqual([EXIT.failed, expect.stringContaining("idempotency key import-1:0 was used for another call")]);
    const orphaned = await many('{"name":"e"}', "--depends-on", "01890000-0000-7000-8000-000000000000");
    expect([orphaned.exit, orphaned.err]).toEqual([EXIT.failed, expect.stringContaining("1 line not stored")]);
  });

  test("names the line that is not JSON", async () => {
    await using fixture = await CliFixture.start(idle);
    const { exit, err } = await fixture.runWith({ input: '{"name":"a"}\nnope\n' }, "enqueue", "greet", "--lines", "-");
    expect(exit).toBe(EXIT.usage);
    expect(err).toContain("line 2 of - is not JSON");
  });

  test("follows it with --watch, and answers with how it ended", async () => {
    await using fixture = await CliFixture.start(idle);
    await fixture.pawl.work();
    const good = await fixture.run("enqueue", "greet", '{"name":"ana"}', "--watch");
    expect([good.exit, good.out]).toEqual([
      EXIT.done,
      expect.stringMatching(/info {2}hello \{"name":"ana"\}[\s\S]*attempt succeeded after[\s\S]*succeeded\n"hello ana"\n$/),
    ]);
    const bad = await fixture.run("enqueue", "fail", '{"user":17}', "--watch", "--json");
    expect(bad.exit).toBe(EXIT.died);
    const events = bad.out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { event: string; state?: string });
    expect(events.at(-1)).toMatchObject({ event: "state", state: "dead" });
    expect(events.some(({ event }) => event === "attempt")).toBe(true);
  });

  test("follows it for --wait at most: unfinished then, it says so and ends with 7", async () => {
    await using fixture = await CliFixture.start(idle);
    const waited = await fixture.run("enqueue", "greet", '{"name":"ana"}', "--delay", "1h", "--wait", "1ms");
    const [job] = (await fixture.pawl.jobs.list()).items;
    expect([waited.exit, waited.err]).toEqual([7, expect.stringContaining(`job ${job?.id} is scheduled after 1 ms, and goes on`)]);
    const watched = await fixture.run("jobs", "watch", String(job?.id), "--wait", "1ms", "--json");
    expect([watched.exit, JSON.parse(watched.err)]).toMatchObject([EXIT.unfinished, { error: { code: "wait_timeout" } }]);
    await fixture.pawl.work();
    expect((await fixture.run("enqueue", "greet", '{"name":"bob"}', "--wait", "60s")).exit).toBe(EXIT.done);
  });

  test.each([
    [["enqueue"], /missing required argument 'task'/],
    [["enqueue", "greet", "{", "--json"], /the input is not JSON/],
    [["enqueue", "greet", "1", "--input", "-"], /the input is given twice/],
    [["enqueue", "greet", "--lines", "-", "--unique", "k"], /--watch, --wait and --unique are for one job/],
    [["enqueue", "greet", "1", "--wait", "soon"], /--wait: soon is not a time/],
    [["enqueue", "greet", "1", "--priority", "11"], /--priority: 11 is not a whole number from 0 to 9/],
    [["enqueue", "greet", "1", "--delay", "soon"], /delay/],
    [["enqueue", "greet", "1", "--dely", "1s"], /unknown option '--dely'\. Did you mean --delay\?/],
  ])("%j is refused and says what is wrong", async (argv, says) => {
    await using fixture = await CliFixture.start(idle);
    const { exit, out, err } = await fixture.run(...argv);
    expect([exit, out]).toEqual([EXIT.usage, ""]);
    expect(err).toMatch(says);
    expect(err.trim().split("\n").length).toBeLessThanOrEqual(2);
  });
});

describe("pawl jobs", () => {
  test("lists by filter and page: as a table in a terminal, with tabs in a pipe, and as JSON", async () => {
    await using fixture = await CliFixture.start(idle);
    for (const name of ["a", "b", "c"]) await fixture.pawl.enqueue(greet, { name }, { tags: [name], tenant: name === "c" ? "acme" : "default" });
    const [, , last] = (await fixture.pawl.jobs.list()).items;
    const page = await fixture.run("jobs", "list", "-n", "2", "--json");
    expect(page.json).toMatchObject({ items: [{ task: "greet", state: "ready" }, { task: "greet" }], next: expect.any(String) });
    const next = (page.json as { next: string }).next;
    expect((await fixture.run("jobs", "list", "--cursor", next, "--json")).json).toEqual({ items: [expect.objectContaining({ id: last?.id })] });
    expect((await fixture.run("jobs", "list", "--tenant", "acme")).out).toMatch(/^[0-9a-f-]{36}\tready\tgreet\tdefault\tacme\t0\t.* ago\t\n$/);
    expect((await fixture.run("jobs", "list", "--tag", "b", "--state", "dead")).out).toBe("");
    expect((await fixture.run("jobs", "list", "--since", "1h", "--json")).json).toMatchObject({ items: [{}, {}, {}] });
    expect((await fixture.run("jobs", "list", "--until", "1h", "--json")).json).toEqual({ items: [] });
    const listed = await fixture.runWith({ terminal: true, env: { NO_COLOR: "1" } }, "jobs", "list", "-n", "1", "--queue", "default");
    expect(listed.out).toMatch(/^ID {30,}STATE {2}TASK {3}QUEUE {4}TENANT +ATTEMPTS {2}DUE +FAILURE\n[0-9a-f-]{36} {2}ready/);
    expect(listed.err).toMatch(/more: pawl jobs list --queue default --cursor /);
  });

  test("colours are for terminals without NO_COLOR", async () => {
    await using fixture = await CliFixture.start(idle);
    await fixture.pawl.enqueue(greet, { name: "a" });
    const coloured = async (terminal: boolean, env: Record<string, string> = {}, ...more: string[]) =>
      (await fixture.runWith({ terminal, env }, "jobs", "list", ...more)).out.includes("\u001b[");
    expect(await coloured(true)).toBe(true);
    expect(await coloured(true, { NO_COLOR: "1" })).toBe(false);
    expect(await coloured(true, { TERM: "dumb" })).toBe(false);
    expect(await coloured(true, {}, "--no-color")).toBe(false);
    expect(await coloured(false)).toBe(false);
    expect(await coloured(false, { FORCE_COLOR: "1" })).toBe(false);
  });

  test("shows the timeline of a dead job, its failure, and the next step; redacted where asked", async () => {
    await using fixture = await CliFixture.start(idle);
    await fixture.pawl.work();
    const job = await fixture.pawl.enqueue(fail, { user: 17 });
    await fixture.pawl.jobs.wait(job);
    const { out } = await fixture.run("jobs", "show", job.id);
    expect(out).toMatch(/state +dead/);
    expect(out).toMatch(/input +\{"user":17\}/);
    expect(out).toMatch(/failed by .* → dead: TypeError: no user 17\n +at /);
    expect(out).toContain(`pawl jobs redrive ${job.id}`);
    const hidden = await fixture.run("jobs", "show", job.id, "--redact", "--json");
    expect(hidden.json).toMatchObject({ job: { id: job.id, input: "(redacted)" }, history: [{ outcome: "failed" }], explanation: { state: "dead" } });
    expect(hidden.out).not.toContain('"user"');
  });

  test("never lets what a failure says reach the terminal as a command", async () => {
    await using fixture = await CliFixture.start({
      tasks: [
        task("evil", { retry: 0 }, () => {
          throw new Error("\u001b[2Jgone\nnext");
        }),
      ],
    });
    await fixture.pawl.work();
    const job = await fixture.pawl.enqueue("evil");
    await fixture.pawl.jobs.wait(job);
    for (const argv of [["jobs", "list"], ["jobs", "show", job.id], ["dead"], ["dead", "list"], ["jobs", "watch", job.id]]) {
      const { out, err } = await fixture.runWith({ terminal: true, env: { NO_COLOR: "1" } }, ...argv);
      expect(out + err, argv.join(" ")).not.toContain("\u001b[2J");
    }
  });

  test("logs and explain tell of one job", async () => {
    await using fixture = await CliFixture.start(idle);
    const waiting = await fixture.pawl.enqueue(greet, { name: "ana" }, { delay: "1h" });
    expect((await fixture.run("jobs", "explain", waiting.id)).out).toMatch(/due/);
    expect((await fixture.run("jobs", "explain", waiting.id, "--json")).json).toMatchObject({
      job: waiting.id,
      state: "scheduled",
      reasons: [{ kind: "due" }, { kind: "unserved" }],
      text: expect.any(String),
    });
    await fixture.pawl.work();
    const job = await fixture.pawl.enqueue(greet, { name: "bob" });
    const { out, exit } = await fixture.run("jobs", "logs", job.id, "-f", "--json");
    expect([exit, JSON.parse(out)]).toEqual([
      EXIT.done,
      { event: "log", at: expect.any(String), level: "info", message: "hello", data: { name: "bob" } },
    ]);
  });

  test("watch says how to go on when it is called off", async () => {
    await using fixture = await CliFixture.start(idle);
    const job = await fixture.pawl.enqueue(greet, { name: "ana" }, { delay: "1h" });
    const { exit, err } = await fixture.runWith({ signal: AbortSignal.abort() }, "jobs", "watch", job.id);
    expect([exit, err]).toEqual([EXIT.interrupted, expect.stringContaining(`pawl jobs watch ${job.id}`)]);
  });

  test("counts jobs, and changes all of a filter, asking first", async () => {
    await using fixture = await CliFixture.start(idle);
    await fixture.pawl.enqueueMany(greet, [{ name: "a" }, { name: "b" }, { name: "c" }], { delay: "1h" });
    const filter = ["--task", "greet", "--state", "scheduled"];
    expect((await fixture.run("jobs", "count", ...filter)).out).toBe("3\n");
    expect((await fixture.run("jobs", "count", "--task", "fail", "--json")).json).toEqual({ count: 0 });
    const unasked = await fixture.run("jobs", "bulk", "cancel", ...filter);
    expect([unasked.exit, unasked.err]).toEqual([EXIT.unconfirmed, expect.stringMatching(/cancel 3 jobs\?/)]);
    const some = await fixture.run("jobs", "bulk", "cancel", ...filter, "--limit", "2", "--reason", "not needed", "--yes", "--json");
    expect([some.exit, some.json]).toEqual([EXIT.done, { changed: 2, skipped: 0, failed: 0 }]);
    const [cancelled] = (await fixture.pawl.jobs.list({ state: "cancelled" })).items;
    expect((await fixture.pawl.jobs.history(cancelled?.id ?? "")).items).toMatchObject([{ failure: { message: "not needed" } }]);
    expect((await fixture.run("jobs", "bulk", "promote", ...filter, "-y")).out).toBe("1 job changed\n");
    const [entry] = (await serviceOf(fixture.pawl).audit.list({ action: "jobs.bulk" })).items;
    expect(entry).toMatchObject({ action: "jobs.bulk", details: { verb: "promote", task: "greet", state: "scheduled" } });
  });

  test.each([
    ["a verb that there is not", ["explode", "--task", "greet"], /not a verb for many jobs/],
    ["no filter at all", ["cancel"], /no filter is given/],
    ["a pace that is not redrive's", ["cancel", "--task", "greet", "--pace", "1/s"], /--pace is for redrive/],
    ["a pace that is none", ["redrive", "--task", "greet", "--pace", "fast"], /--pace 100ms, --pace 10\/s/],
    ["an instant without an offset", ["cancel", "--since", "2026-11-15T12:00"], /2026-11-15T12:00Z/],
  ])("changes nothing by %s", async (_, args, says) => {
    await using fixture = await CliFixture.start(idle);
    const { exit, err } = await fixture.run("jobs", "bulk", ...args);
    expect([exit, err]).toEqual([EXIT.usage, expect.stringMatching(says)]);
  });

  test("verbs change jobs, each for itself, and ask before what is final", async () => {
    await using fixture = await CliFixture.start(idle);
    const [a, b] = await fixture.pawl.enqueueMany(greet, [{ name: "a" }, { name: "b" }], { delay: "1h" });
    const [first, second] = [a?.id ?? "", b?.id ?? ""];
    expect((await fixture.run("jobs", "pause", first)).out).toBe(`${first}  scheduled → parked\n`);
    expect((await fixture.run("jobs", "resume", first, "--json")).json).toEqual({ results: [{ id: first, from: "parked", to: "scheduled" }] });
    expect((await fixture.run("jobs", "promote", first, second)).out).toBe(`${first}  scheduled → ready\n${second}  scheduled → ready\n`);
    const answer = await fixture.run("jobs", "cancel", first, second);
    expect([answer.exit, answer.out, answer.err]).toEqual([EXIT.unconfirmed, "", expect.stringMatching(/cancel 2 jobs\? .*\n.*--yes/)]);
    expect((await fixture.run("jobs", "cancel", first, "--yes", "--reason", "test")).out).toBe(`${first}  ready → cancelled\n`);
    const mixed = await fixture.run("jobs", "cancel", first, second, "-y", "--json");
    expect([mixed.exit, mixed.json]).toEqual([
      EXIT.failed,
      {
        results: [
          { id: first, error: { code: "job_state_conflict", message: expect.any(String) } },
          { id: second, from: "ready", to: "cancelled" },
        ],
      },
    ]);
    const refused = await fixture.run("jobs", "cancel", first, "-y");
    expect([refused.exit, refused.err]).toEqual([
      EXIT.failed,
      `pawl: job ${first} is cancelled: cancel does not apply\n      pawl jobs show ${first} tells what can be done with it\n`,
    ]);
    expect((await fixture.run("jobs", "rerun", second, "--json")).json).toMatchObject({ task: "greet", rerunOf: second });
    expect((await fixture.run("jobs", "delete", second, "-y")).out).toBe(`${second}  deleted\n`);
    expect((await fixture.run("jobs", "show", second)).exit).toBe(EXIT.unknown);
  });

  test("verbs on many jobs end with Ctrl-C between two of them, and the error says how to go on", async () => {
    await using fixture = await CliFixture.start(idle);
    const jobs = await fixture.pawl.enqueueMany(greet, [{ name: "a" }, { name: "b" }, { name: "c" }], { delay: "1h" });
    const [a = "", b = "", c = ""] = jobs.map(({ id }) => id);
    const stop = new AbortController();
    fixture.pawl.on("job.changed", () => stop.abort());
    const { exit, out, err } = await fixture.runWith({ signal: stop.signal }, "jobs", "cancel", a, b, c, "--yes");
    expect([exit, out]).toEqual([EXIT.interrupted, `${a}  scheduled → cancelled\n`]);
    expect(err).toBe(`pawl: 1 of 3 jobs, then stopped\n      go on: pawl jobs cancel ${b} ${c}\n`);
    expect((await fixture.pawl.jobs.get(b)).state).toBe("scheduled");
  });

  test("a job nobody has heard of has an exit code of its own, and the error says where to look", async () => {
    await using fixture = await CliFixture.start(idle);
    const { exit, err } = await fixture.run("jobs", "show", "0199ffff-ffff-7fff-bfff-ffffffffffff");
    expect([exit, err]).toEqual([EXIT.unknown, expect.stringMatching(/^pawl: there is no job "0199ffff.*\n {6}pawl jobs list /)]);
  });
});
