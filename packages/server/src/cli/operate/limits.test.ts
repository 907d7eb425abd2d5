import { RetryAfter, task } from "pawl";
import { describe, expect, test } from "vitest";
import { CliFixture } from "../../../../../test/support/fixtures/cli-fixture.js";

const call = task(
  "call",
  { limits: [{ name: "per account", key: (input) => input, concurrency: 1, rate: { limit: 100, per: "1m" } }] },
  async (_: string) => {},
);

/** Two keys of which one slot is taken: one job waits at the first, two at the second. */
async function full(fixture: CliFixture): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const account of ["a/b c", "a/b c", "z", "z", "z"]) ids.push((await fixture.pawl.enqueue(call, account)).id);
  return ids;
}

describe("pawl limits", () => {
  test("shows the keys at which jobs wait: what they allow, who waits for what, and who is next", async () => {
    await using fixture = await CliFixture.start({ tasks: [call] });
    expect(await fixture.run("limits")).toMatchObject({ exit: 0, out: "", err: "no job waits at a key\n" });
    const [, next] = await full(fixture);
    const [first] = (await fixture.run("limits")).out.split("\n").map((line) => line.split("\t"));
    expect(first).toEqual(["per account", "a/b c", "default", "1 at a time, 100 per 1 min", "1", "1", "a slot", next]);
  });

  test("says until when a key rests", async () => {
    const refused = task("refused", { limits: [{ key: () => "k", concurrency: 1 }] }, () => {
      throw new RetryAfter("90m");
    });
    await using fixture = await CliFixture.start({ tasks: [refused] });
    for (let n = 0; n < 2; n++) await fixture.pawl.enqueue(refused);
    await fixture.pawl.work();
    await expect.poll(async () => (await fixture.run("limits")).out.split("\t")[6]).toBe("its pause to end in 90 min");
  });

  test("goes on where a page ended, whatever is in a name", async () => {
    await using fixture = await CliFixture.start({ tasks: [call] });
    await full(fixture);
    const first = await fixture.run("limits", "-n", "1");
    const [, cursor = ""] = /^more: --cursor ([\w-]+)\n$/.exec(first.err) ?? [];
    const { items, next } = JSON.parse((await fixture.run("limits", "--json", "--cursor", cursor)).out);
    expect(items).toMatchObject([{ name: "per account", key: "z", held: 1, waiting: 2, tokens: 99, next: { for: "concurrency" } }]);
    expect(next).toBeUndefined();
  });

  test("narrows to a tenant, a limit of it and a key of that", async () => {
    await using fixture = await CliFixture.start({ tasks: [call] });
    await full(fixture);
    const keys = async (...flags: readonly string[]) =>
      (JSON.parse((await fixture.run("limits", "--json", ...flags)).out) as { items: { key: string }[] }).items.map(({ key }) => key);
    expect(await keys("--tenant", "default", "--name", "per account", "--key", "z")).toEqual(["z"]);
    expect(await keys("--tenant", "default", "--name", "other")).toEqual([]);
    expect(await keys("--tenant", "acme")).toEqual([]);
  });

  test.each([
    ["a limit without its tenant", ["--name", "per account"], /filter\.tenant/],
    ["a cursor that no page ended with", ["--cursor", "default/per%20account"], /page\.cursor/],
    ["a page of none", ["--limit", "0"], /--limit/],
  ])("refuses %s", async (_, flags, message) => {
    await using fixture = await CliFixture.start({ tasks: [call] });
    const { exit, err } = await fixture.run("limits", ...flags);
    expect([exit, err]).toEqual([2, expect.stringMatching(message)]);
  });
});
