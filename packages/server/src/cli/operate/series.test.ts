import { describe, expect, test } from "vitest";
import { CliFixture } from "../../../../../test/support/fixtures/cli-fixture.js";
import { EXIT } from "../exit.js";

const idle = { maintenance: false } as const;

describe("pawl series", () => {
  test("draws bars in a terminal, and leaves out what there was none of", async () => {
    await using fixture = await CliFixture.start(idle);
    await fixture.pawl.enqueueMany("mail", [1, 2, 3]);
    const { exit, out } = await fixture.runWith({ terminal: true, env: { NO_COLOR: "1" } }, "series", "--queue", "default");
    expect(exit).toBe(EXIT.done);
    expect(out).toMatch(/^queue default .* 60 steps of 1 min\n/);
    expect(out).toMatch(/enqueued .*█ {2}3\n/);
    expect(out).toMatch(/ready .*█ {2}3\n/);
    expect(out).not.toContain("died");
  });

  test("is rows with tabs in a pipe, and the whole answer as JSON", async () => {
    await using fixture = await CliFixture.start(idle);
    await fixture.pawl.enqueue("mail", 1);
    const piped = await fixture.run("series", "--by", "task", "--last", "5m", "--step", "5m");
    expect(piped.out.trim().split("\n").at(-1)?.split("\t").slice(2, 4)).toEqual(["mail", "1"]);
    const { json } = await fixture.run("series", "--last", "2h", "--json");
    expect(json).toMatchObject({ step: 120_000, series: [{ points: expect.any(Array) }] });
  });

  test("says which flag is wrong", async () => {
    await using fixture = await CliFixture.start(idle);
    for (const [flags, what] of [
      [["--by", "tenant"], /--by: tenant/],
      [["--last", "soon"], /--last: soon/],
      [["--last", "1h", "--from", "2h"], /--last and --from/],
    ] as const) {
      const { exit, err } = await fixture.run("series", ...flags);
      expect([exit, err]).toEqual([EXIT.usage, expect.stringMatching(what)]);
    }
  });
});
