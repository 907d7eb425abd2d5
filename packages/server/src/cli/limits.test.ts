import { RetryAfter, task } from "pawl";
import { describe, expect, test } from "vitest";
import { Rig } from "../../../../test/support/rig.js";

const call = task(
  "call",
  { limits: [{ name: "per account", key: (input) => input, concurrency: 1, rate: { limit: 100, per: "1m" } }] },
  async (_: string) => {},
);

/** Two keys of which one place is taken: one job waits at the first, two at the second. */
async function full(rig: Rig): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const account of ["a/b c", "a/b c", "z", "z", "z"]) ids.push((await rig.pawl.enqueue(call, account)).id);
  return ids;
}

describe("pawl limits", () => {
  test("shows the keys at which jobs wait: what they allow, who waits for what, and who is next", async () => {
    await using rig = await Rig.start({ tasks: [call] });
    expect(await rig.do("limits")).toMatchObject({ exit: 0, out: "", err: "no job waits at a key\n" });
    const [, next] = await full(rig);
    const [first] = (await rig.do("limits")).out.split("\n").map((line) => line.split("\t"));
    expect(first).toEqual(["per account", "a/b c", "default", "1 at a time, 100 per 1 min", "1", "1", "a place", next]);
  });

  test("says until when a key rests", async () => {
    const refused = task("refused", { limits: [{ key: () => "k", concurrency: 1 }] }, () => {
      throw new RetryAfter("90m");
    });
    await using rig = await Rig.start({ tasks: [refused] });
    for (let n = 0; n < 2; n++) await rig.pawl.enqueue(refused);
    await rig.pawl.work();
    await expect.poll(async () => (await rig.do("limits")).out.split("\t")[6]).toBe("its pause to end in 90 min");
  });

  test("goes on where a page ended, whatever is in a name", async () => {
    await using rig = await Rig.start({ tasks: [call] });
    await full(rig);
    const first = await rig.do("limits", "-n", "1");
    expect(first.err).toBe("more: --after default/per%20account/a%2Fb%20c\n");
    const { limits, next } = JSON.parse((await rig.do("limits", "--json", "--after", "default/per%20account/a%2Fb%20c")).out);
    expect(limits).toMatchObject([{ limit: "per account", key: "z", held: 1, waiting: 2, tokens: 99, next: { for: "concurrency" } }]);
    expect(next).toBeUndefined();
  });

  test("narrows to a tenant, a limit of it and a key of that", async () => {
    await using rig = await Rig.start({ tasks: [call] });
    await full(rig);
    const keys = async (...flags: readonly string[]) =>
      (JSON.parse((await rig.do("limits", "--json", ...flags)).out) as { limits: { key: string }[] }).limits.map(({ key }) => key);
    expect(await keys("--tenant", "default", "--name", "per account", "--key", "z")).toEqual(["z"]);
    expect(await keys("--tenant", "default", "--name", "other")).toEqual([]);
    expect(await keys("--tenant", "acme")).toEqual([]);
  });

  test.each([
    ["a limit without its tenant", ["--name", "per account"], /filter\.tenant/],
    ["half of a place", ["--after", "default/per%20account"], /--after default\/account\/a%20b/],
    ["a place that was cut off", ["--after", "default/per%2/a"], /is not where a page ended/],
    ["a page of none", ["--limit", "0"], /--limit/],
  ])("refuses %s", async (_, flags, said) => {
    await using rig = await Rig.start({ tasks: [call] });
    const { exit, err } = await rig.do("limits", ...flags);
    expect([exit, err]).toEqual([2, expect.stringMatching(said)]);
  });
});
