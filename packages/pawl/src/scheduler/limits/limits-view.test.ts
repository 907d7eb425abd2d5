import { describe, expect, it } from "vitest";
import { task } from "../../index.js";
import { openTest } from "../../testing/open.js";

interface ListedCall {
  readonly account: string;
}

const call = task(
  "call",
  { limits: [{ name: "account", key: "account", concurrency: 1, rate: { limit: 10, per: "1m", burst: 10 } }] },
  (_: ListedCall) => {},
);

describe("limits", () => {
  it("list the keys at which jobs wait, with who is next, page by page", async () => {
    await using world = await openTest({ tasks: [call], work: false });
    const { pawl } = world;
    for (const account of ["a", "b", "c"]) await pawl.enqueue(call, { account });
    const next = await pawl.enqueue(call, { account: "a" }, { tenant: "acme" });
    const first = await pawl.enqueue(call, { account: "b" });
    await pawl.enqueue(call, { account: "c" });
    const page = await pawl.limits.list({}, { limit: 1 });
    expect(page).toEqual({
      items: [
        {
          tenant: "default",
          name: "account",
          key: "b",
          concurrency: 1,
          rate: { limit: 10, per: 60_000, burst: 10 },
          held: 1,
          waiting: 1,
          tokens: 9,
          fullAt: expect.any(Date),
          next: { job: first.id, for: "concurrency" },
        },
      ],
      next: expect.any(String),
    });
    const rest = await pawl.limits.list({}, { limit: 10, ...(page.next === undefined ? {} : { cursor: page.next }) });
    expect(rest.items.map(({ key }) => key)).toEqual(["c"]);
    expect(rest).not.toHaveProperty("next");
    expect((await next.get()).state, "of another tenant: another key").toBe("ready");
  });

  it("are of a tenant, of a limit or of a key; and explain a job of theirs with the same counts", async () => {
    await using world = await openTest({ tasks: [call], work: false });
    const { pawl } = world;
    const [first, second] = await pawl.enqueueMany(call, [{ account: "a" }, { account: "a" }, { account: "a" }]);
    for (const filter of [{ tenant: "default" }, { tenant: "default", name: "account" }, { tenant: "default", name: "account", key: "a" }])
      expect((await pawl.limits.list(filter)).items).toMatchObject([{ key: "a", held: 1, waiting: 2 }]);
    for (const filter of [{ tenant: "acme" }, { tenant: "default", name: "other" }, { tenant: "default", name: "account", key: "b" }])
      expect((await pawl.limits.list(filter)).items).toEqual([]);
    const explained = await pawl.jobs.explain(second?.id as string);
    expect(explained.reasons[0]).toMatchObject({ kind: "limit_key", limit: "account", key: "a", held: 1, most: 1, waiting: 2 });
    expect(explained.text).toContain(`Key a of limit account has 1 of its 1 slots taken, by ${first?.id} (ready); 2 jobs wait there.`);
  });

  it.each([
    ["a key without its limit", { tenant: "acme", key: "k" }, {}, "option_invalid"],
    ["a limit without its tenant", { name: "account" }, {}, "option_invalid"],
    ["a misspelt filter", { tenat: "acme" }, {}, "option_invalid"],
    ["an empty name", { tenant: "" }, {}, "name_invalid"],
    ["a page of none", {}, { limit: 0 }, "option_invalid"],
    ["a page too large", {}, { limit: 1_001 }, "option_invalid"],
    ["a misspelt page", {}, { size: 1 }, "option_invalid"],
    ["a filter by another word for the name", { tenant: "acme", limit: "account" }, {}, "option_invalid"],
    ["a cursor that nothing ended with", {}, { cursor: "acme/account" }, "option_invalid"],
  ])("refuse %s", async (_, filter, page, code) => {
    await using world = await openTest({ tasks: [call], work: false });
    await expect(world.pawl.limits.list(filter as never, page as never)).rejects.toMatchObject({ code });
  });
});
