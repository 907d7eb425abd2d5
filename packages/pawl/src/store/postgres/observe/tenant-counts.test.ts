import { expect, it } from "vitest";
import { TenantCounts } from "./tenant-counts.js";

it("what a tenant has standing is looked for one at a time, and all who ask before a look has begun share it", async () => {
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const standings = new TenantCounts((tenant) => {
    begun.push(tenant);
    return new Promise((resolve) => ends.push(() => resolve([])));
  });
  const turn = () => new Promise(setImmediate);

  const first = [standings.of("a"), standings.of("a")];
  await turn();
  const later = [standings.of("a"), standings.of("b"), standings.of("a"), standings.of("b")];
  await turn();
  expect(begun).toEqual(["a"]);
  ends[0]?.();
  await Promise.all(first);
  await turn();
  expect(begun).toEqual(["a", "a"]);
  ends[1]?.();
  await turn();
  expect(begun).toEqual(["a", "a", "b"]);
  ends[2]?.();
  await Promise.all(later);
  expect(ends).toHaveLength(3);
});

it("a look that fails is told to all who share it, and the next one is made", async () => {
  let fails = true;
  const standings = new TenantCounts(async () => {
    if (fails) throw new Error("the store is away");
    return [];
  });
  await expect(Promise.all([standings.of("a"), standings.of("a")])).rejects.toThrow("away");
  fails = false;
  expect(await standings.of("a")).toEqual([]);
});
