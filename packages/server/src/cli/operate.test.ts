import { Readable } from "node:stream";
import { schedule, task } from "pawl";
import { describe, expect, test } from "vitest";
import { Rig } from "../../../../test/support/rig.js";
import { EXIT } from "./exit.js";
import { run } from "./program.js";

let down = true;
const flaky = task("flaky", { retry: 0 }, async (input: number) => {
  if (down) throw new Error(`no user ${input}`);
});
const tick = task("tick", async () => {});
const options = { tasks: [flaky, tick], schedules: [schedule("nightly", tick, { cron: "0 3 * * *", zone: "Europe/Berlin" })] };

/** Dead jobs of one cause. */
async function graveyard(count: number): Promise<Rig> {
  down = true;
  const rig = await Rig.start(options);
  await rig.pawl.work();
  const jobs = await rig.pawl.enqueueMany(
    flaky,
    Array.from({ length: count }, (_, n) => n),
  );
  await Promise.all(jobs.map((job) => rig.pawl.jobs.wait(job)));
  return rig;
}

describe("pawl dead", () => {
  test("groups by what jobs died of, and says what to do about the first", async () => {
    await using rig = await graveyard(3);
    const { json } = await rig.do("dead", "--json");
    expect(json).toEqual({
      groups: [
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
    const { fingerprint } = (json as { groups: { fingerprint: string }[] }).groups[0] as { fingerprint: string };
    const { out, err } = await rig.do("dead", "groups", "--task", "flaky");
    expect(out).toMatch(new RegExp(`^${fingerprint}\\t3\\t.* ago\\t.* ago\\tflaky\\tError: no user <n>\\n$`));
    expect(err).toContain(`pawl dead redrive --group ${fingerprint} --canary 5`);
    expect((await rig.do("dead", "list", "--group", fingerprint, "--json")).json).toMatchObject({ jobs: [{}, {}, {}] });
    expect((await rig.do("dead", "list", "--group", "0123456789abcdef")).out).toBe("");
    expect(await rig.do("dead", "list", "--group", "xyz")).toMatchObject({
      exit: EXIT.usage,
      err: expect.stringContaining("--group: xyz is not a group"),
    });
    expect((await rig.do("dead", "groups", "--queue", "other", "--json")).json).toEqual({ groups: [] });
  });

  test("redrives a few, and leaves the rest alone when one of them dies again", async () => {
    await using rig = await graveyard(6);
    const { exit, err } = await rig.do("dead", "redrive", "--canary", "2", "--yes");
    expect([exit, err]).toEqual([EXIT.died, expect.stringMatching(/ended badly: Error: no user \d; the rest was left alone\n +pawl jobs show /)]);
    expect((await rig.pawl.counts()).dead).toBe(6);
  });

  test("redrives a few, and when they succeed the rest at a rate", async () => {
    await using rig = await graveyard(6);
    down = false;
    const { exit, json } = await rig.do("dead", "redrive", "--canary", "2", "--rate", "1000/s", "--yes", "--json");
    expect([exit, json]).toEqual([EXIT.done, { redriven: 6, skipped: 0 }]);
    expect(await rig.pawl.dead.count()).toBe(0);
  });

  test("asks before the rest, and may be stopped and taken up again", async () => {
    await using rig = await graveyard(6);
    down = false;
    expect((await rig.do("dead", "redrive")).exit).toBe(EXIT.unconfirmed);
    expect((await rig.do("dead", "redrive", "--limit", "2", "--yes", "--json")).json).toEqual({ redriven: 2, skipped: 0 });
    const stop = new AbortController();
    const [third] = (await rig.pawl.dead.list({}, { limit: 1 })).jobs;
    const settled = new Promise((resolve) => rig.pawl.on("attempt.settled", resolve));
    const stopped = rig.under({ signal: stop.signal }, "dead", "redrive", "--task", "flaky", "--rate", "1/h", "--yes");
    await settled;
    stop.abort();
    const { exit, err } = await stopped;
    expect(exit).toBe(EXIT.interrupted);
    expect(err).toMatch(new RegExp(`1 job redriven, then stopped\\n +go on: pawl dead redrive --task flaky --rate 1/h --after ${third?.id}`));
    expect((await rig.do("dead", "redrive", "--after", third?.id ?? "", "--yes", "--json")).json).toEqual({ redriven: 3, skipped: 0 });
  });

  test("drops, when it may", async () => {
    await using rig = await graveyard(3);
    expect((await rig.do("dead", "drop", "--limit", "2")).exit).toBe(EXIT.unconfirmed);
    expect((await rig.do("dead", "drop", "--limit", "2", "-y", "--json")).json).toEqual({ count: 2, skipped: 0, failed: 0 });
    expect((await rig.do("dead", "drop", "-y")).out).toBe("1 job dropped\n");
    expect((await rig.do("dead", "drop", "-y", "--json")).json).toEqual({ count: 0, skipped: 0, failed: 0 });
  });
});

test("a flag that is wrong is told before a store is opened for it", async () => {
  const wrong = [
    ["dead", "redrive", "--rate", "fast"],
    ["dead", "drop", "--limit", "some"],
    ["dead", "--limit", "0"],
    ["jobs", "--since", "once"],
    ["schedules", "--limit", "x"],
    ["schedules", "preview", "nightly", "--count", "x"],
    ["series", "--by", "day"],
    ["enqueue", "mail", "--priority", "12"],
  ];
  for (const argv of wrong) {
    let opened = 0;
    const said: string[] = [];
    const sink = { write: (text: string) => said.push(text) };
    const exit = await run(argv, {
      io: { stdin: Readable.from([]), stdout: sink, stderr: sink, env: {} },
      signal: () => new AbortController().signal,
      openTarget: async () => Promise.reject(new Error(`opened ${++opened}`)),
    });
    expect([argv, exit, opened, said[0]]).toEqual([argv, EXIT.usage, 0, expect.stringMatching(/^pawl: --/)]);
  }
});

describe("a question", () => {
  const asked = "remove 1 dead job for good? [y/N] ";

  test.each([
    ["no", "n\n"],
    ["nothing", "\n"],
    ["the end of the input", ""],
  ])("answered with %s leaves things as they are", async (_, input) => {
    await using rig = await graveyard(1);
    const { exit, err } = await rig.under({ terminal: true, input }, "dead", "drop");
    expect([exit, err]).toEqual([EXIT.unconfirmed, `${asked}pawl: nothing was done\n`]);
    expect(await rig.pawl.dead.count()).toBe(1);
  });

  test("answered with yes is a command", async () => {
    await using rig = await graveyard(1);
    const { exit, out, err } = await rig.under({ terminal: true, input: "yes\n" }, "dead", "drop");
    expect([exit, out, err]).toEqual([EXIT.done, "1 job dropped\n", asked]);
  });

  test("that nobody answers is over with Ctrl-C", async () => {
    await using rig = await graveyard(1);
    const stop = new AbortController();
    stop.abort();
    const { exit } = await rig.under({ terminal: true, input: "yes\n", signal: stop.signal }, "dead", "drop");
    expect(exit).toBe(EXIT.interrupted);
    expect(await rig.pawl.dead.count()).toBe(1);
  });
});

describe("pawl queues, tasks and tenants", () => {
  test("are listed, shown, paused, resumed and limited", async () => {
    await using rig = await Rig.start(options);
    await rig.pawl.enqueue(tick, undefined, { queue: "mail" });
    expect((await rig.do("queues", "list", "--json")).json).toMatchObject({
      queues: [{ queue: "mail", paused: false, policy: {}, counts: { ready: 1 } }],
    });
    expect((await rig.do("queues", "pause", "mail", "other")).out).toBe("mail paused\nother paused\n");
    expect((await rig.do("queues", "list")).out).toBe("mail\tpaused\t1\t0\t0\t0\t0\t0\t0\t\nother\tpaused\t0\t0\t0\t0\t0\t0\t0\t\n");
    expect((await rig.do("queues", "resume", "mail", "--json")).json).toEqual({ resumed: ["mail"] });
    const set = await rig.do(
      "queues",
      "set",
      "mail",
      "--concurrency",
      "5",
      "--rate",
      "100/s",
      "--weights",
      "9=10,5=3",
      "--ingest-depth",
      "1000",
      "--json",
    );
    expect(set.json).toMatchObject({
      queue: "mail",
      policy: { concurrency: 5, rate: { limit: 100, per: 1_000 }, weights: { 9: 10, 5: 3 }, ingest: { depth: 1_000 } },
    });
    expect((await rig.do("queues", "set", "mail", "--concurrency", "none", "--ingest-depth", "none", "--json")).json).toMatchObject({
      policy: { rate: {}, weights: {} },
    });
    expect((await rig.do("queues", "show", "mail")).out).toMatch(/^queue +mail\nready +1\n/);
    expect((await rig.do("queues", "set", "mail", "--concurrency", "7")).exit).toBe(EXIT.done);
    expect((await rig.do("queues", "show", "mail")).out).toMatch(/^concurrency +7$/m);
    expect((await rig.do("tasks", "list", "--json")).json).toMatchObject({ tasks: [{ task: "flaky", registered: true }, { task: "tick" }] });
    expect((await rig.do("tenants", "set", "acme", "--weight", "2.5", "--json")).json).toEqual({ tenant: "acme", policy: { weight: 2.5 } });
    expect((await rig.do("tenants", "list")).out).toBe("acme\t\tweight 2.5\n");
  });

  test.each([
    [["queues", "set", "mail"], /nothing to set/],
    [["queues", "set", "mail", "--rate", "fast"], /--rate: fast is not a rate/],
    [["queues", "set", "mail", "--weights", "10=1"], /--weights: 10=1 is not a list of bands/],
    [["queues", "set", "mail", "--strict", "maybe"], /--strict: maybe is neither yes nor no/],
    [["tasks", "set", "tick", "--weight", "2"], /unknown option '--weight'/],
    [["queues", "set", "mail", "--concurrency", "-1"], /--concurrency/],
  ])("%j is refused", async (argv, says) => {
    await using rig = await Rig.start(options);
    const { exit, err } = await rig.do(...argv);
    expect([exit, err]).toEqual([EXIT.usage, expect.stringMatching(says)]);
  });
});

describe("pawl schedules", () => {
  test("are listed, previewed, paused, triggered and filled", async () => {
    await using rig = await Rig.start(options);
    expect((await rig.do("schedules", "list", "--json")).json).toMatchObject({
      schedules: [{ name: "nightly", task: "tick", cron: "0 3 * * *", zone: "Europe/Berlin" }],
    });
    expect((await rig.do("schedules", "list")).out).toMatch(/^nightly\tdefault\ttick\t0 3 \* \* \* Europe\/Berlin\tin .*\t\n$/);
    const { json } = await rig.do("schedules", "preview", "nightly", "-n", "2", "--from", "2026-01-01T00:00Z", "--json");
    expect(json).toMatchObject({ ticks: [{ at: "2026-01-01T02:00:00.000Z" }, { at: "2026-01-02T02:00:00.000Z" }] });
    expect((await rig.do("schedules", "pause", "nightly")).out).toBe("nightly paused\n");
    expect((await rig.do("schedules", "list", "--paused")).out).toContain("paused");
    expect((await rig.do("schedules", "resume", "nightly")).exit).toBe(EXIT.done);
    const triggered = (await rig.do("schedules", "trigger", "nightly")).out.trim();
    expect((await rig.do("schedules", "show", "nightly", "--json")).json).toMatchObject({
      schedule: { name: "nightly" },
      ticks: [{ kind: "triggered", job: triggered }],
    });
    const range = ["--from", "2026-01-01T00:00Z", "--to", "2026-01-03T12:00Z"];
    expect((await rig.do("schedules", "backfill", "nightly", ...range, "--dry-run")).out).toBe("3 ticks, 0 with a job; 3 jobs would be made\n");
    expect((await rig.do("schedules", "backfill", "nightly", ...range)).exit).toBe(EXIT.unconfirmed);
    expect((await rig.do("schedules", "backfill", "nightly", ...range, "-y", "--json")).json).toMatchObject({ ticks: 3, jobs: 3 });
    expect((await rig.do("schedules", "show", "never")).exit).toBe(EXIT.unknown);
    expect((await rig.do("schedules", "remove", "nightly", "--yes")).out).toBe("nightly removed\n");
    await rig.pawl.schedules.put("heartbeat", tick, { every: "90s" });
    expect((await rig.do("schedules", "list")).out).toMatch(/^heartbeat\tdefault\ttick\tevery 90s\t/);
  });
});

describe("pawl workers, top and doctor", () => {
  test("tell who is there, and of a lane nobody serves", async () => {
    await using rig = await Rig.start(options);
    await rig.pawl.enqueue(tick);
    expect((await rig.do("workers", "--json")).json).toEqual({ workers: [] });
    const ill = await rig.do("doctor", "--json");
    expect([ill.exit, ill.json]).toEqual([
      EXIT.unwell,
      { healthy: false, findings: [expect.objectContaining({ check: "unserved", level: "warning" })] },
    ]);
    expect((await rig.do("doctor", "-q")).out).toMatch(
      /^! unserved: the jobs of task tick .* wait for nobody: no worker is live\n {4}costs .*\n {4}mend .*\n$/,
    );
    const [job] = (await rig.pawl.jobs.list()).jobs;
    await rig.pawl.jobs.cancel(job?.id ?? "");
    expect((await rig.do("doctor", "-q")).out).toBe("");
    expect((await rig.do("doctor")).out.match(/^✓ /gm)).toHaveLength(11);
    await rig.pawl.work({ name: "ana" });
    expect((await rig.do("workers")).out).toMatch(/^ana\t.* ago\t0 of \d+\t\t\d+\.\d+\.\d+\tall\t\tflaky,tick\n$/);
    expect((await rig.do("top", "--json")).json).toMatchObject({ queues: [{ queue: "default" }], workers: [{ name: "ana" }], lanes: [] });
  });
});

describe("the command line", () => {
  test("helps: with every command, with one, and where one was left out", async () => {
    await using rig = await Rig.start(options);
    const { exit, out } = await rig.do("--help");
    expect(exit).toBe(EXIT.done);
    for (const name of ["enqueue", "jobs", "dead", "doctor", "top"]) expect(out).toMatch(new RegExp(`^ {2}${name} `, "m"));
    expect((await rig.do("jobs", "list", "--help")).out).toMatch(/--failure <class>[\s\S]*Every command:[\s\S]*--json/);
    expect((await rig.do("help", "jobs")).out).toContain("explain");
    expect((await rig.do("jobs", "--help")).out).toContain("explain");
    expect((await rig.do()).exit).toBe(EXIT.usage);
    expect((await rig.do("--version")).out).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test.each([
    ["jobs", "jobs"],
    ["dead", "groups"],
    ["queues", "queues"],
    ["tasks", "tasks"],
    ["tenants", "tenants"],
    ["series", "series"],
    ["schedules", "schedules"],
    ["keys", "keys"],
    ["audit", "entries"],
    ["workers", "workers"],
  ])("shows with %s alone what there is", async (noun, field) => {
    await using rig = await Rig.start({ ...options, keys: { pepper: "a pepper of sixteen bytes or more" } });
    expect((await rig.do(noun, "--json")).json).toHaveProperty(field);
    expect((await rig.do(noun)).exit).toBe(EXIT.done);
  });

  test("speaks JSON also when it is misread", async () => {
    await using rig = await Rig.start(options);
    const { exit, err } = await rig.do("jobs", "list", "--stat", "dead", "--json");
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
      /--since: yesterday is neither a date nor a time ago\n +write --since 2026-11-15T12:00Z or --since 1h/,
    ],
    [["jobs", "list", "--since", "1h", "--until", "2h"], /--since: 1h is after --until 2h\n +exchange them: --since is the earlier one/],
    [["jobs", "list", "-n", "0"], /--limit: 0 is not a whole number from 1 to 1,000/],
    [["jobs", "list", "--after", "x"], /after/],
    [["completion", "tcsh"], /Allowed choices are bash, zsh, fish/],
  ])("%j is refused, in words that help", async (argv, says) => {
    await using rig = await Rig.start(options);
    const { exit, err, out } = await rig.do(...argv);
    expect([exit, out]).toEqual([EXIT.usage, ""]);
    expect(err).toMatch(says);
  });
});
