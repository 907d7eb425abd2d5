import { isPawlError, task } from "pawl";
import { pawlError } from "pawl/service";
import { faultyStore, openTest } from "pawl/testing";
import { describe, expect, test } from "vitest";
import { type LogOptions, logTo } from "./log.js";
import { safeText } from "./safe-text.js";
import { ThrottledLines } from "./throttled-lines.js";

function recorded(options: LogOptions = {}) {
  const lines: string[] = [];
  const log = logTo({ ...options, write: (line) => void lines.push(line) });
  const parsed = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  return { log, lines, parsed };
}

const fine = task<number, void>("fine", () => {});
const bad = task<string, void>("bad", { retry: 0 }, (message) => {
  throw new RangeError(message);
});

describe("the log", () => {
  test("says in one line each what goes wrong, with what it is about", async () => {
    const { log, parsed } = recorded();
    await using world = await openTest({ tasks: [fine, bad] });
    log.follow(world.pawl);
    await world.pawl.enqueue(fine, 1);
    const job = await world.pawl.enqueue(bad, "no such file", { tenant: "acme" });
    await world.drain();
    const dead = parsed().filter(({ event }) => event === "attempt.settled");
    expect(dead).toMatchObject([
      {
        level: "error",
        msg: "bad: dead after 1 attempt: no such file",
        job: job.id,
        task: "bad",
        tenant: "acme",
        attempt: 1,
        class: "RangeError",
        next: "dead",
      },
    ]);
    expect(Date.parse(dead[0]?.time as string)).not.toBeNaN();
  });

  test("says more at the level debug, and less at the level error", async () => {
    const chatty = recorded({ level: "debug" });
    const terse = recorded({ level: "error" });
    await using world = await openTest({ tasks: [fine], work: false });
    chatty.log.follow(world.pawl);
    terse.log.follow(world.pawl);
    await world.pawl.work();
    await world.pawl.enqueue(fine, 1);
    await world.drain();
    expect(chatty.parsed().map(({ event }) => event)).toEqual(
      expect.arrayContaining(["worker.started", "jobs.enqueued", "jobs.claimed", "attempt.started", "attempt.settled"]),
    );
    expect(terse.lines).toEqual([]);
  });

  test("does not even have events made that it would not write", async () => {
    const { log } = recorded();
    const listened: string[] = [];
    const pawl = {
      on(name: string) {
        listened.push(name);
        return () => {};
      },
    };
    log.follow(pawl);
    expect(listened).toContain("lease.lost");
    for (const name of ["attempt.started", "jobs.enqueued", "jobs.claimed", "store.operation", "maintenance.polled"])
      expect(listened).not.toContain(name);
    const before = listened.length;
    recorded({ level: "silent" }).log.follow(pawl);
    expect(listened).toHaveLength(before);
  });

  test("warns of a job that is put off because its key is not here", async () => {
    const { log, parsed } = recorded();
    await using world = await openTest({
      tasks: [fine],
      wrapStore: ({ leases, ...store }) => ({
        ...store,
        leases: {
          ...leases,
          async claim(request) {
            const claimed = await leases.claim(request);
            return claimed && { ...claimed, jobs: claimed.jobs.map((job) => ({ ...job, input: '"pawl:encrypted:1:j:key:box"' })) };
          },
        },
      }),
    });
    log.follow(world.pawl);
    await world.pawl.enqueue(fine, 1);
    await world.advance("1s");
    expect(parsed()).toMatchObject([
      {
        level: "warn",
        msg: expect.stringMatching(/^fine: put off: its input is encrypted, and this process has no master key for it; again in /),
        class: "payload_undecryptable",
      },
    ]);
  });

  test("hears nothing more once it is told not to follow", async () => {
    const { log, lines } = recorded();
    await using world = await openTest({ tasks: [fine], work: false });
    log.follow(world.pawl)();
    await world.pawl.work();
    expect(lines).toEqual([]);
  });

  test("says at most one line a second of each class while the store is away (S73)", async () => {
    const { log, parsed } = recorded();
    let away = false;
    await using world = await openTest({
      tasks: [fine],
      wrapStore: (store) =>
        faultyStore(store, () => (away ? { kind: "fail", error: pawlError("store_unreachable", { store: "here", reason: "gone" }) } : undefined)),
    });
    log.follow(world.pawl);
    away = true;
    // A minute of virtual time passes in far less than a second of the log's.
    await world.advance("1m");
    away = false;
    const classes = parsed()
      .filter(({ level }) => level === "error")
      .map(({ event, duty }) => `${event} ${duty}`);
    expect(classes.length).toBeGreaterThan(0);
    expect(new Set(classes).size).toBe(classes.length);
  });

  test("is one line whatever others put into names and messages (S73)", async () => {
    const hostile = "x\r\n2026 INFO all is well \u001b[2J\u009b31m\u2028\u202e";
    for (const format of ["json", "lines"] as const) {
      const { log, lines } = recorded({ format });
      await using world = await openTest({ tasks: [bad] });
      log.follow(world.pawl);
      await world.pawl.enqueue(bad, hostile);
      log.warn(hostile, { [hostile]: hostile, deep: { list: [hostile] } });
      await world.drain();
      expect(lines.length).toBeGreaterThanOrEqual(2);
      for (const line of lines) expect(line.slice(0, -1)).not.toMatch(/[\p{Cc}\u2028\u202e]/u);
      for (const line of lines) expect(line.endsWith("\n")).toBe(true);
    }
  });

  test.each([
    ["a URL", "cannot reach postgres://pawl:canary@db/x"],
    ["a header", "authorization: Bearer canary-0123456789"],
    ["a key", `refused pawl_live_${"a".repeat(16)}_canary${"b".repeat(43)}`],
    ["a setting", "password=canary&user=x"],
    ["a webhook's secret", "whsec_canary0123"],
    ["JSON", '{"token":"canary"}'],
  ])("shows no secret of %s (S52)", (_, text) => {
    const { log, lines } = recorded();
    log.error(text, { note: text });
    expect(lines[0]).not.toContain("canary");
    expect(lines[0]).toContain("hidden");
  });

  test("writes no field that holds what nobody should read", () => {
    const { log, lines } = recorded();
    log.info("a request", {
      headers: { authorization: "canary", cookie: "canary" },
      password: "canary",
      input: { card: "canary" },
      path: "/v1/jobs",
    });
    expect(lines[0]).not.toContain("canary");
    expect(lines[0]).toContain("/v1/jobs");
  });

  test("is for people where they read it", () => {
    const { log, lines } = recorded({ format: "lines" });
    log.warn("a lease was lost", { jobs: 3 });
    expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d WARN {2}a lease was lost {2}jobs=3\n$/);
  });

  test.each<[string, object]>([
    ["a misspelt option", { levle: "info" }],
    ["a level nobody knows", { level: "verbose" }],
    ["a format nobody knows", { format: "xml" }],
    ["a place that is none", { write: "stdout" }],
  ])("refuses %s", (_, options) => {
    expect(() => logTo(options)).toThrow(expect.toSatisfy((error) => isPawlError(error, "option_invalid")));
  });
});

describe("lines of one class", () => {
  test("come once a second, and the next one tells how many were left out", () => {
    let now = 0;
    const throttled = new ThrottledLines(() => now);
    expect([throttled.admit("a"), throttled.admit("a"), throttled.admit("b"), throttled.admit("a")]).toEqual([0, undefined, 0, undefined]);
    now = 999;
    expect(throttled.admit("a")).toBeUndefined();
    now = 1_000;
    expect(throttled.admit("a")).toBe(3);
    expect(throttled.admit("a")).toBeUndefined();
  });

  test("are of one class together where there are too many classes", () => {
    const throttled = new ThrottledLines(() => 0);
    for (let i = 0; i < 1_000; i++) expect(throttled.admit(`class ${i}`)).toBe(0);
    expect([throttled.admit("one more"), throttled.admit("and another"), throttled.admit("class 0")]).toEqual([0, undefined, undefined]);
  });
});

test("long texts are cut, and plain ones stay as they are", () => {
  expect(safeText("Größe 5 µm, 日本語 👍")).toBe("Größe 5 µm, 日本語 👍");
  expect(safeText("x".repeat(5_000)).length).toBeLessThan(2_100);
});
