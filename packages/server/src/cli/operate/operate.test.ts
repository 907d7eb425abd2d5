import { Readable } from "node:stream";
import { type JobId, schedule, task } from "pawl";
import { jobsCursorAfter } from "pawl/service";
import { describe, expect, test } from "vitest";
import { CliFixture } from "../../../../../test/support/fixtures/cli-fixture.js";
import { EXIT } from "../exit.js";
import { run } from "../program.js";

let down = true;
const flaky = task("flaky", { retry: 0 }, async (input: number) => {
  if (down) throw new Error(`no user ${input}`);
});
const tick = task("tick", async () => {});
const options = { tasks: [flaky, tick], schedules: [schedule("nightly", tick, { cron: "0 3 * * *", timeZone: "Europe/Berlin" })] };

/** Dead jobs of one cause. */
async function graveyard(count: number): Promise<CliFixture> {
  down = true;
  const fixture = await CliFixture.start(options);
  await fixture.pawl.work();
  const jobs = await fixture.pawl.enqueueMany(
    flaky,
    Array.from({ length: count }, (_, n) => n),
  );
  await Promise.all(jobs.map((job) => fixture.pawl.jobs.wait(job)));
  return fixture;
}

describe("pawl dead", () => {
  test("groups by what jobs died of, and says what to do about the first", async () => {
    await using fixture = await graveyard(3);
    const { json } = await fixture.run("dead", "--json");
    expect(json).toEqual({
      items: [
        {
          fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/),
          task: "flaky",
          kind: "error",
          name: "Error",
          message: "no user <n>",
          count: 3,
          firstSeen: expect.any(String),
          lastSeen: expect.any(String),
          sample: expect.objectContaining({ state: "dead" }),
        },
      ],
    });
    const { fingerprint } = (json as { items: { fingerprint: string }[] }).items[0] as { fingerprint: string };
    const { out, err } = await fixture.run("dead", "groups", "--task", "flaky");
    expect(out).toMatch(new RegExp(`^${fingerprint}\\t3\\t.* ago\\t.* ago\\tflaky\\tError: no user <n>\\n$`));
    expect(err).toContain(`pawl dead redrive --fingerprint ${fingerprint} --canary 5`);
    expect((await fixture.run("dead", "list", "--fingerprint", fingerprint, "--json")).json).toMatchObject({ items: [{}, {}, {}] });
    expect((await fixture.run("dead", "list", "--fingerprint", "0123456789abcdef")).out).toBe("");
    expect(await fixture.run("dead", "list", "--fingerprint", "xyz")).toMatchObject({
      exit: EXIT.usage,
      err: expect.stringContaining("--fingerprint: xyz is not a group"),
    });
    expect((await fixture.run("dead", "groups", "--queue", "other", "--json")).json).toEqual({ items: [] });
  });

  test("redrives a few, and leaves the rest alone when one of them dies again", async () => {
    await using fixture = await graveyard(6);
    const { exit, err } = await fixture.run("dead", "redrive", "--canary", "2", "--yes");
    expect([exit, err]).toEqual([EXIT.died, expect.stringMatching(/ended badly: Error: no user \d; the rest was left alone\n +pawl jobs show /)]);
    expect((await fixture.pawl.counts()).dead).toBe(6);
  });

  test("redrives a few, and when they succeed the rest at a pace", async () => {
    await using fixture = await graveyard(6);
    down = false;
    const { exit, json } = await fixture.run("dead", "redrive", "--canary", "2", "--pace", "1000/s", "--yes", "--json");
    expect([exit, json]).toEqual([EXIT.done, { redriven: 6, skipped: 0 }]);
    expect(await fixture.pawl.dead.count()).toBe(0);
  });

  test("asks before the rest, and may be stopped and taken up again", async () => {
    await using fixture = await graveyard(6);
    down = false;
    expect((await fixture.run("dead", "redrive")).exit).toBe(EXIT.unconfirmed);
    expect((await fixture.run("dead", "redrive", "--limit", "2", "--yes", "--json")).json).toEqual({ redriven: 2, skipped: 0 });
    const stop = new AbortController();
    const [third] = (await fixture.pawl.dead.list({}, { limit: 1 })).items;
    const settled = new Promise((resolve) => fixture.pawl.on("attempt.settled", resolve));
    const stopped = fixture.runWith({ signal: stop.signal }, "dead", "redrive", "--task", "flaky", "--pace", "1/h", "--yes");
    await settled;
    stop.abort();
    const { exit, err } = await stopped;
    expect(exit).toBe(EXIT.interrupted);
    expect(err).toMatch(
      new RegExp(
        `1 job redriven, then stopped\\n +go on: pawl dead redrive --task flaky --pace 1/h --cursor ${jobsCursorAfter(third?.id as JobId)}\n`,
      ),
    );
    expect((await fixture.run("dead", "redrive", "--cursor", jobsCursorAfter(third?.id as JobId), "--yes", "--json")).json).toEqual({
      redriven: 3,
      skipped: 0,
    });
  });

  test("deletes, when it may", async () => {
    await using fixture = await graveyard(3);
    expect((await fixture.run("dead", "delete", "--limit", "2")).exit).toBe(EXIT.unconfirmed);
    expect((await fixture.run("dead", "delete", "--limit", "2", "-y", "--json")).json).toEqual({ changed: 2, skipped: 0, failed: 0 });
    expect((await fixture.run("dead", "delete", "-y")).out).toBe("1 job deleted\n");
    expect((await fixture.run("dead", "delete", "-y", "--json")).json).toEqual({ changed: 0, skipped: 0, failed: 0 });
  });
});

test("a flag that is wrong is told before a store is opened for it", async () => {
  const wrong = [
    ["dead", "redrive", "--pace", "fast"],
    ["dead", "delete", "--limit", "some"],
    ["dead", "--limit", "0"],
    ["jobs", "--since", "once"],
    ["schedules", "--limit", "x"],
    ["schedules", "preview", "nightly", "--count", "x"],
    ["series", "--by", "day"],
    ["enqueue", "mail", "--priority", "12"],
  ];
  for (const argv of wrong) {
    let opened = 0;
    const output: string[] = [];
    const sink = { write: (text: string) => output.push(text) };
    const exit = await run(argv, {
      io: { stdin: Readable.from([]), stdout: sink, stderr: sink, env: {} },
      signal: () => new AbortController().signal,
      openTarget: async () => Promise.reject(new Error(`opened ${++opened}`)),
    });
    expect([argv, exit, opened, output[0]]).toEqual([argv, EXIT.usage, 0, expect.stringMatching(/^pawl: --/)]);
  }
});

describe("a question", () => {
  const question = "delete 1 dead job for good? [y/N] ";

  test.each([
    ["no", "n\n"],
    ["nothing", "\n"],
    ["the end of the input", ""],
  ])("answered with %s leaves things as they are", async (_, input) => {
    await using fixture = await graveyard(1);
    const { exit, err } = await fixture.runWith({ terminal: true, input }, "dead", "delete");
    expect([exit, err]).toEqual([EXIT.unconfirmed, `${question}pawl: nothing was done\n`]);
    expect(await fixture.pawl.dead.count()).toBe(1);
  });

  test("answered with yes is a command", async () => {
    await using fixture = await graveyard(1);
    const { exit, out, err } = await fixture.runWith({ terminal: true, input: "yes\n" }, "dead", "delete");
    expect([exit, out, err]).toEqual([EXIT.done, "1 job deleted\n", question]);
  });

  test("that nobody answers is over with Ctrl-C", async () => {
    await using fixture = await graveyard(1);
    const stop = new AbortController();
    stop.abort();
    const { exit } = await fixture.runWith({ terminal: true, input: "yes\n", signal: stop.signal }, "dead", "delete");
    expect(exit).toBe(EXIT.interrupted);
    expect(await fixture.pawl.dead.count()).toBe(1);
  });
});

describe("pawl queues, tasks and tenants", () => {
  test("are listed, shown, paused, resumed and limited", async () => {
    await using fixture = await CliFixture.start(options);
    await fixture.pawl.enqueue(tick, undefined, { queue: "mail" });
    expect((await fixture.run("queues", "list", "--json")).json).toMatchObject({
      items: [{ queue: "mail", paused: false, policy: {}, counts: { ready: 1 } }],
    });
    expect((await fixture.run("queues", "pause", "mail", "other")).out).toBe("mail paused\nother paused\n");
    expect((await fixture.run("queues", "list")).out).toBe("mail\tpaused\t1\t0\t0\t0\t0\t0\t0\t\nother\tpaused\t0\t0\t0\t0\t0\t0\t0\t\n");
    expect((await fixture.run("queues", "resume", "mail", "--json")).json).toEqual({ resumed: ["mail"] });
    const set = await fixture.run(
      "queues",
      "update",
      "mail",
      "--concurrency",
      "5",
      "--rate",
      "100/s",
      "--priority-weights",
      "9=10,5=3",
      "--ingest-depth",
      "1000",
      "--json",
    );
    expect(set.json).toMatchObject({
      queue: "mail",
      policy: { concurrency: 5, rate: { limit: 100, per: 1_000 }, priorityWeights: { 9: 10, 5: 3 }, ingest: { depth: 1_000 } },
    });
    expect((await fixture.run("queues", "update", "mail", "--concurrency", "none", "--ingest-depth", "none", "--json")).json).toMatchObject({
      policy: { rate: {}, priorityWeights: {} },
    });
    expect((await fixture.run("queues", "show", "mail")).out).toMatch(/^queue +mail\nready +1\n/);
    expect((await fixture.run("queues", "update", "mail", "--concurrency", "7")).exit).toBe(EXIT.done);
    expect((await fixture.run("queues", "show", "mail")).out).toMatch(/^concurrency +7$/m);
    expect((await fixture.run("tasks", "list", "--json")).json).toMatchObject({ items: [{ task: "flaky", registered: true }, { task: "tick" }] });
    expect((await fixture.run("tenants", "update", "acme", "--weight", "2.5", "--json")).json).toEqual({ tenant: "acme", policy: { weight: 2.5 } });
    expect((await fixture.run("tenants", "list")).out).toBe("acme\t\tweight 2.5\n");
  });

  test.each([
    [["queues", "update", "mail"], /nothing to change/],
    [["queues", "update", "mail", "--rate", "fast"], /--rate: fast is not a rate/],
    [["queues", "update", "mail", "--priority-weights", "10=1"], /--priority-weights: 10=1 is not a list of priorities/],
    [["queues", "update", "mail", "--strict-priority", "maybe"], /--strict-priority: maybe is neither yes nor no/],
    [["tasks", "update", "tick", "--weight", "2"], /unknown option '--weight'/],
    [["queues", "update", "mail", "--concurrency", "-1"], /--concurrency/],
  ])("%j is refused", async (argv, says) => {
    await using fixture = await CliFixture.start(options);
    const { exit, err } = await fixture.run(...argv);
    expect([exit, err]).toEqual([EXIT.usage, expect.stringMatching(says)]);
  });
});

describe("pawl schedules", () => {
  test("are made and replaced with put, which takes one of --cron, --every and --at", async () => {
    await using fixture = await CliFixture.start(options);
    const put = (...flags: string[]) => fixture.run("schedules", "put", "made", "--task", "tick", ...flags);
    expect((await put("--cron", "0 8 * * 1-5", "--time-zone", "Europe/Berlin", "--priority", "high", "--overlap", "wait")).out).toBe(
      "made created\n",
    );
    expect((await put("--every", "5m", "--missed", "skip", "--json")).json).toEqual({ schedule: "made", result: "changed" });
    expect((await put("--every", "5m", "--missed", "skip")).out).toBe("made unchanged\n");
    expect(await fixture.pawl.schedules.get("made")).toMatchObject({ task: "tick", every: 300_000, missed: { policy: "skip" } });
    for (const flags of [[], ["--cron", "0 8 * * *", "--every", "5m"]]) {
      const { exit, err } = await put(...flags);
      expect([exit, err]).toEqual([EXIT.usage, expect.stringContaining("a schedule takes one of --cron, --every and --at")]);
    }
    const wrong = await put("--cron", "61 * * * *");
    expect([wrong.exit, wrong.err]).toEqual([EXIT.usage, expect.stringContaining("61 * * * *")]);
  });

  test("are listed, previewed, paused, triggered and filled", async () => {
    await using fixture = await CliFixture.start(options);
    expect((await fixture.run("schedules", "list", "--json")).json).toMatchObject({
      items: [{ name: "nightly", task: "tick", cron: "0 3 * * *", timeZone: "Europe/Berlin" }],
    });
    expect((await fixture.run("schedules", "list")).out).toMatch(/^nightly\tdefault\ttick\t0 3 \* \* \* Europe\/Berlin\tin .*\t\n$/);
    const { json } = await fixture.run("schedules", "preview", "nightly", "-n", "2", "--from", "2026-01-01T00:00Z", "--json");
    expect(json).toMatchObject({ items: [{ at: "2026-01-01T02:00:00.000Z" }, { at: "2026-01-02T02:00:00.000Z" }] });
    expect((await fixture.run("schedules", "pause", "nightly")).out).toBe("nightly paused\n");
    expect((await fixture.run("schedules", "list", "--paused")).out).toContain("paused");
    expect((await fixture.run("schedules", "resume", "nightly")).exit).toBe(EXIT.done);
    const triggered = (await fixture.run("schedules", "trigger", "nightly")).out.trim();
    expect((await fixture.run("schedules", "show", "nightly", "--json")).json).toMatchObject({
      schedule: { name: "nightly" },
      ticks: [{ kind: "triggered", job: triggered }],
    });
    const range = ["--from", "2026-01-01T00:00Z", "--to", "2026-01-03T12:00Z"];
    expect((await fixture.run("schedules", "backfill", "nightly", ...range, "--dry-run")).out).toBe("3 ticks, 0 with a job; 3 jobs would be made\n");
    expect((await fixture.run("schedules", "backfill", "nightly", ...range)).exit).toBe(EXIT.unconfirmed);
    expect((await fixture.run("schedules", "backfill", "nightly", ...range, "-y", "--json")).json).toMatchObject({ ticks: 3, jobs: 3 });
    expect((await fixture.run("schedules", "show", "never")).exit).toBe(EXIT.unknown);
    expect((await fixture.run("schedules", "delete", "nightly", "--yes")).out).toBe("nightly deleted\n");
    await fixture.pawl.schedules.put("heartbeat", tick, { every: "90s" });
    expect((await fixture.run("schedules", "list")).out).toMatch(/^heartbeat\tdefault\ttick\tevery 90s\t/);
  });
});

describe("pawl workers, top and doctor", () => {
  test("tell who is there, and of a lane nobody serves", async () => {
    await using fixture = await CliFixture.start(options);
    await fixture.pawl.enqueue(tick);
    expect((await fixture.run("workers", "--json")).json).toEqual({ items: [] });
    const lane = { lane: { queue: "default", priority: 5, tenant: "default", task: "tick" }, workers: 0, lacks: [{ kind: "worker" }] };
    expect((await fixture.run("lanes", "--unserved", "--json")).json).toEqual({ items: [{ ...lane, why: "no worker is live" }] });
    expect((await fixture.run("lanes")).out).toBe("default\t5\tdefault\ttick\t0\tno worker is live\n");
    const ill = await fixture.run("doctor", "--json");
    expect([ill.exit, ill.json]).toEqual([
      EXIT.found,
      { healthy: false, findings: [expect.objectContaining({ check: "unserved", level: "warning" })] },
    ]);
    expect((await fixture.run("doctor", "-q")).out).toMatch(
      /^! unserved: the jobs of task tick .* wait for nobody: no worker is live\n {4}costs .*\n {4}mend .*\n$/,
    );
    const [job] = (await fixture.pawl.jobs.list()).items;
    await fixture.pawl.jobs.cancel(job?.id ?? "");
    expect((await fixture.run("doctor", "-q")).out).toBe("");
    expect((await fixture.run("doctor")).out.match(/^✓ /gm)).toHaveLength(11);
    await fixture.pawl.work({ name: "ana" });
    expect((await fixture.run("workers")).out).toMatch(/^ana\t.* ago\t0 of \d+\t\t\d+\.\d+\.\d+\tall\t\tflaky,tick\n$/);
    expect((await fixture.run("top", "--json")).json).toMatchObject({ queues: [{ queue: "default" }], workers: [{ name: "ana" }], lanes: [] });
  });
});

describe("the command line", () => {
  test("helps: with every command, with one, and where one was left out", async () => {
    await using fixture = await CliFixture.start(options);
    const { exit, out } = await fixture.run("--help");
    expect(exit).toBe(EXIT.done);
    for (const name of ["enqueue", "jobs", "dead", "doctor", "top"]) expect(out).toMatch(new RegExp(`^ {2}${name} `, "m"));
    expect((await fixture.run("jobs", "list", "--help")).out).toMatch(/--failure <class>[\s\S]*Every command:[\s\S]*--json/);
    expect((await fixture.run("help", "jobs")).out).toContain("explain");
    expect((await fixture.run("jobs", "--help")).out).toContain("explain");
    expect((await fixture.run()).exit).toBe(EXIT.usage);
    expect((await fixture.run("--version")).out).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test.each([
    ["jobs", "items"],
    ["dead", "items"],
    ["queues", "items"],
    ["tasks", "items"],
    ["tenants", "items"],
    ["series", "series"],
    ["schedules", "items"],
    ["api-keys", "items"],
    ["audit", "items"],
    ["workers", "items"],
  ])("shows with %s alone what there is", async (noun, field) => {
    await using fixture = await CliFixture.start({ ...options, apiKeys: { pepper: "a pepper of sixteen bytes or more" } });
    expect((await fixture.run(noun, "--json")).json).toHaveProperty(field);
    expect((await fixture.run(noun)).exit).toBe(EXIT.done);
  });

  test("speaks JSON also when it is misread", async () => {
    await using fixture = await CliFixture.start(options);
    const { exit, err } = await fixture.run("jobs", "list", "--stat", "dead", "--json");
    expect([exit, JSON.parse(err)]).toEqual([
      EXIT.usage,
      { error: { code: "usage", message: "unknown option '--stat'. Did you mean --state?", help: "pawl jobs list --help tells what there is" } },
    ]);
  });

  test.each([
    [["jbos"], /unknown command 'jbos'\. Did you mean jobs\?/],
    [["jobs", "lst"], /unknown command 'lst'\. Did you mean one of list, ls\?\n +pawl jobs --help/],
    [["dead", "grups"], /unknown command 'grups'\. Did you mean groups\?\n +pawl dead --help/],
    [["queues", "--bogus"], /unknown option '--bogus'\n +pawl queues --help/],
    [["jobs", "ls", "--bogus"], /unknown option '--bogus'\n +pawl jobs list --help/],
    [["jobs", "--task", "mail", "show", "x"], /--task stands before the command\n +give it after: pawl jobs show … --task …/],
    [
      ["--store=postgres://me:secret@host/db", "jobs", "list"],
      /^(?!.*secret).*--store stands before the command\n +give it after: pawl jobs … --store …/,
    ],
    [["jobs", "list", "--state", "broken"], /'broken' is invalid\. Allowed choices are blocked/],
    [
      ["jobs", "list", "--since", "yesterday"],
      /--since: yesterday is neither an instant with an offset nor a time ago\n +write --since 2026-11-15T12:00Z or --since 1h/,
    ],
    [["jobs", "list", "--since", "1h", "--until", "2h"], /--since: 1h is after --until 2h\n +exchange them: --since is the earlier one/],
    [["jobs", "list", "-n", "0"], /--limit: 0 is not a whole number from 1 to 1,000/],
    [["jobs", "list", "--cursor", "x"], /cursor/],
    [["completion", "tcsh"], /Allowed choices are bash, zsh, fish/],
  ])("%j is refused, in words that help", async (argv, says) => {
    await using fixture = await CliFixture.start(options);
    const { exit, err, out } = await fixture.run(...argv);
    expect([exit, out]).toEqual([EXIT.usage, ""]);
    expect(err).toMatch(says);
  });
});
