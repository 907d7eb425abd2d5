import { task } from "pawl";
import { describe, expect, test } from "vitest";
import { Rig } from "../../../../test/support/rig.js";
import { EXIT } from "./exit.js";

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
    await using rig = await Rig.start(idle);
    const { exit, out, err } = await rig.do(
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
    expect(await rig.pawl.jobs.get(out.trim())).toMatchObject({
      task: "greet",
      queue: "mail",
      priority: 7,
      tags: ["a", "b"],
      tenant: "acme",
      input: { name: "ana" },
    });
  });

  test("reads the input from a pipe", async () => {
    await using rig = await Rig.start(idle);
    const { out } = await rig.under({ input: '{"name":\n"bob"}' }, "enqueue", "greet", "--input", "-");
    expect((await rig.pawl.jobs.get(out.trim())).input).toEqual({ name: "bob" });
  });

  test("stores many from lines, and a second run adds only what is missing", async () => {
    await using rig = await Rig.start(idle);
    const lines = (count: number) => Array.from({ length: count }, (_, n) => JSON.stringify({ name: `n${n}` })).join("\n");
    const many = async (count: number) =>
      (await rig.under({ input: `${lines(count)}\n\n` }, "enqueue", "greet", "--many", "-", "--request", "import-1", "--json")).json;
    expect(await many(3)).toMatchObject({ count: 3, created: 3, existing: 0 });
    expect(await many(5)).toMatchObject({ count: 5, created: 2, existing: 3 });
    expect((await rig.pawl.counts()).ready).toBe(5);
  });

  test("refuses lines whose request id was used for other inputs, and says how many", async () => {
    await using rig = await Rig.start(idle);
    const many = (input: string, ...more: string[]) => rig.under({ input }, "enqueue", "greet", "--many", "-", ...more);
    await many('{"name":"a"}\n{"name":"b"}', "--request", "import-1");
    const { exit, err } = await many('{"name":"a"}\n{"name":"c"}\n{"name":"d"}', "--request", "import-1");
    expect([exit, (await rig.pawl.counts()).ready]).toEqual([EXIT.failed, 3]);
    expect(err).toContain("request id import-1 was used for other jobs: 1 line not stored, 1 stored");
    const one = await rig.do("enqueue", "greet", '{"name":"z"}', "--request", "import-1:0");
    expect([one.exit, one.err]).toEqual([EXIT.failed, expect.stringContaining("request id import-1:0 was used for other jobs")]);
    const orphaned = await many('{"name":"e"}', "--after", "01890000-0000-7000-8000-000000000000");
    expect([orphaned.exit, orphaned.err]).toEqual([EXIT.failed, expect.stringContaining("1 line not stored")]);
  });

  test("names the line that is not JSON", async () => {
    await using rig = await Rig.start(idle);
    const { exit, err } = await rig.under({ input: '{"name":"a"}\nnope\n' }, "enqueue", "greet", "--many", "-");
    expect(exit).toBe(EXIT.usage);
    expect(err).toContain("line 2 of - is not JSON");
  });

  test("follows it with --watch, and answers with how it ended", async () => {
    await using rig = await Rig.start(idle);
    await rig.pawl.work();
    const good = await rig.do("enqueue", "greet", '{"name":"ana"}', "--watch");
    expect([good.exit, good.out]).toEqual([
      EXIT.done,
      expect.stringMatching(/info {2}hello \{"name":"ana"\}[\s\S]*attempt succeeded after[\s\S]*succeeded\n"hello ana"\n$/),
    ]);
    const bad = await rig.do("enqueue", "fail", '{"user":17}', "--watch", "--json");
    expect(bad.exit).toBe(EXIT.died);
    const events = bad.out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { event: string; state?: string });
    expect(events.at(-1)).toMatchObject({ event: "state", state: "dead" });
    expect(events.some(({ event }) => event === "attempt")).toBe(true);
  });

  test.each([
    [["enqueue"], /missing required argument 'task'/],
    [["enqueue", "greet", "{", "--json"], /the input is not JSON/],
    [["enqueue", "greet", "1", "--input", "-"], /the input is given twice/],
    [["enqueue", "greet", "--many", "-", "--key", "k"], /--watch and --key are for one job/],
    [["enqueue", "greet", "1", "--priority", "11"], /--priority: 11 is not a whole number from 0 to 9/],
    [["enqueue", "greet", "1", "--delay", "soon"], /delay/],
    [["enqueue", "greet", "1", "--dely", "1s"], /unknown option '--dely'\. Did you mean --delay\?/],
  ])("%j is refused and says what is wrong", async (argv, says) => {
    await using rig = await Rig.start(idle);
    const { exit, out, err } = await rig.do(...argv);
    expect([exit, out]).toEqual([EXIT.usage, ""]);
    expect(err).toMatch(says);
    expect(err.trim().split("\n").length).toBeLessThanOrEqual(2);
  });
});

describe("pawl jobs", () => {
  test("lists by filter and page: as a table in a terminal, with tabs in a pipe, and as JSON", async () => {
    await using rig = await Rig.start(idle);
    for (const name of ["a", "b", "c"]) await rig.pawl.enqueue(greet, { name }, { tags: [name], tenant: name === "c" ? "acme" : "default" });
    const [, , last] = (await rig.pawl.jobs.list()).jobs;
    const page = await rig.do("jobs", "list", "-n", "2", "--json");
    expect(page.json).toMatchObject({ jobs: [{ task: "greet", state: "ready" }, { task: "greet" }], next: expect.any(String) });
    const next = (page.json as { next: string }).next;
    expect((await rig.do("jobs", "list", "--after", next, "--json")).json).toEqual({ jobs: [expect.objectContaining({ id: last?.id })] });
    expect((await rig.do("jobs", "list", "--tenant", "acme")).out).toMatch(/^[0-9a-f-]{36}\tready\tgreet\tdefault\tacme\t0\t.* ago\t\n$/);
    expect((await rig.do("jobs", "list", "--tag", "b", "--state", "dead")).out).toBe("");
    expect((await rig.do("jobs", "list", "--since", "1h", "--json")).json).toMatchObject({ jobs: [{}, {}, {}] });
    expect((await rig.do("jobs", "list", "--until", "1h", "--json")).json).toEqual({ jobs: [] });
    const shown = await rig.under({ terminal: true, env: { NO_COLOR: "1" } }, "jobs", "list", "-n", "1", "--queue", "default");
    expect(shown.out).toMatch(/^ID {30,}STATE {2}TASK {3}QUEUE {4}TENANT +ATTEMPTS {2}DUE +FAILURE\n[0-9a-f-]{36} {2}ready/);
    expect(shown.err).toMatch(/more: pawl jobs list --queue default --after /);
  });

  test("colours are for terminals without NO_COLOR", async () => {
    await using rig = await Rig.start(idle);
    await rig.pawl.enqueue(greet, { name: "a" });
    const coloured = async (terminal: boolean, env: Record<string, string> = {}, ...more: string[]) =>
      (await rig.under({ terminal, env }, "jobs", "list", ...more)).out.includes("\u001b[");
    expect(await coloured(true)).toBe(true);
    expect(await coloured(true, { NO_COLOR: "1" })).toBe(false);
    expect(await coloured(true, { TERM: "dumb" })).toBe(false);
    expect(await coloured(true, {}, "--no-color")).toBe(false);
    expect(await coloured(false)).toBe(false);
    expect(await coloured(false, { FORCE_COLOR: "1" })).toBe(false);
  });

  test("shows the timeline of a dead job, its failure, and the next step; redacted where asked", async () => {
    await using rig = await Rig.start(idle);
    await rig.pawl.work();
    const job = await rig.pawl.enqueue(fail, { user: 17 });
    await rig.pawl.jobs.wait(job);
    const { out } = await rig.do("jobs", "show", job.id);
    expect(out).toMatch(/state +dead/);
    expect(out).toMatch(/input +\{"user":17\}/);
    expect(out).toMatch(/failed by .* → dead: TypeError: no user 17\n +at /);
    expect(out).toContain(`pawl jobs redrive ${job.id}`);
    const hidden = await rig.do("jobs", "show", job.id, "--redact", "--json");
    expect(hidden.json).toMatchObject({ job: { id: job.id, input: "(redacted)" }, history: [{ outcome: "failed" }], explanation: { state: "dead" } });
    expect(hidden.out).not.toContain('"user"');
  });

  test("never lets what a failure says reach the terminal as a command", async () => {
    await using rig = await Rig.start({
      tasks: [
        task("evil", { retry: 0 }, () => {
          throw new Error("\u001b[2Jgone\nnext");
        }),
      ],
    });
    await rig.pawl.work();
    const job = await rig.pawl.enqueue("evil");
    await rig.pawl.jobs.wait(job);
    for (const argv of [["jobs", "list"], ["jobs", "show", job.id], ["dead"], ["dead", "list"], ["jobs", "watch", job.id]]) {
      const { out, err } = await rig.under({ terminal: true, env: { NO_COLOR: "1" } }, ...argv);
      expect(out + err, argv.join(" ")).not.toContain("\u001b[2J");
    }
  });

  test("logs and explain tell of one job", async () => {
    await using rig = await Rig.start(idle);
    const waiting = await rig.pawl.enqueue(greet, { name: "ana" }, { delay: "1h" });
    expect((await rig.do("jobs", "explain", waiting.id)).out).toMatch(/due/);
    expect((await rig.do("jobs", "explain", waiting.id, "--json")).json).toMatchObject({
      job: waiting.id,
      state: "scheduled",
      reasons: [{ kind: "due" }, { kind: "unserved" }],
      text: expect.any(String),
    });
    await rig.pawl.work();
    const job = await rig.pawl.enqueue(greet, { name: "bob" });
    const { out, exit } = await rig.do("jobs", "logs", job.id, "-f", "--json");
    expect([exit, JSON.parse(out)]).toEqual([
      EXIT.done,
      { event: "log", at: expect.any(String), level: "info", message: "hello", data: { name: "bob" } },
    ]);
  });

  test("watch says how to go on when it is called off", async () => {
    await using rig = await Rig.start(idle);
    const job = await rig.pawl.enqueue(greet, { name: "ana" }, { delay: "1h" });
    const { exit, err } = await rig.under({ signal: AbortSignal.abort() }, "jobs", "watch", job.id);
    expect([exit, err]).toEqual([EXIT.interrupted, expect.stringContaining(`pawl jobs watch ${job.id}`)]);
  });

  test("verbs change jobs, each for itself, and ask before what is final", async () => {
    await using rig = await Rig.start(idle);
    const [a, b] = await rig.pawl.enqueueMany(greet, [{ name: "a" }, { name: "b" }], { delay: "1h" });
    const [first, second] = [a?.id ?? "", b?.id ?? ""];
    expect((await rig.do("jobs", "pause", first)).out).toBe(`${first}  scheduled → parked\n`);
    expect((await rig.do("jobs", "resume", first, "--json")).json).toEqual({ results: [{ id: first, from: "parked", to: "scheduled" }] });
    expect((await rig.do("jobs", "retry", first, second)).out).toBe(`${first}  scheduled → ready\n${second}  scheduled → ready\n`);
    const asked = await rig.do("jobs", "cancel", first, second);
    expect([asked.exit, asked.out, asked.err]).toEqual([EXIT.unconfirmed, "", expect.stringMatching(/cancel 2 jobs\? .*\n.*--yes/)]);
    expect((await rig.do("jobs", "cancel", first, "--yes", "--reason", "test")).out).toBe(`${first}  ready → cancelled\n`);
    const mixed = await rig.do("jobs", "cancel", first, second, "-y", "--json");
    expect([mixed.exit, mixed.json]).toEqual([
      EXIT.failed,
      {
        results: [
          { id: first, error: { code: "job_state", message: expect.any(String) } },
          { id: second, from: "ready", to: "cancelled" },
        ],
      },
    ]);
    const refused = await rig.do("jobs", "cancel", first, "-y");
    expect([refused.exit, refused.err]).toEqual([
      EXIT.failed,
      `pawl: job ${first} is cancelled: cancel does not apply\n      pawl jobs show ${first} tells what can be done with it\n`,
    ]);
    expect((await rig.do("jobs", "replay", second, "--json")).json).toMatchObject({ task: "greet", replayOf: second });
    expect((await rig.do("jobs", "drop", second, "-y")).out).toBe(`${second}  cancelled → gone\n`);
    expect((await rig.do("jobs", "show", second)).exit).toBe(EXIT.unknown);
  });

  test("verbs on many jobs end with Ctrl-C between two of them, and the error says how to go on", async () => {
    await using rig = await Rig.start(idle);
    const jobs = await rig.pawl.enqueueMany(greet, [{ name: "a" }, { name: "b" }, { name: "c" }], { delay: "1h" });
    const [a = "", b = "", c = ""] = jobs.map(({ id }) => id);
    const stop = new AbortController();
    rig.pawl.on("job.changed", () => stop.abort());
    const { exit, out, err } = await rig.under({ signal: stop.signal }, "jobs", "cancel", a, b, c, "--yes");
    expect([exit, out]).toEqual([EXIT.interrupted, `${a}  scheduled → cancelled\n`]);
    expect(err).toBe(`pawl: 1 of 3 jobs, then stopped\n      go on: pawl jobs cancel ${b} ${c}\n`);
    expect((await rig.pawl.jobs.get(b)).state).toBe("scheduled");
  });

  test("a job nobody has heard of has an exit code of its own, and the error says where to look", async () => {
    await using rig = await Rig.start(idle);
    const { exit, err } = await rig.do("jobs", "show", "0199ffff-ffff-7fff-bfff-ffffffffffff");
    expect([exit, err]).toEqual([EXIT.unknown, expect.stringMatching(/^pawl: there is no job "0199ffff.*\n {6}pawl jobs list /)]);
  });
});
