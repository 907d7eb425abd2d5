import { expect } from "vitest";
import type { LimitRule } from "../../src/core/limits/limit-rule.js";
import { type LimitKeyRef, MAX_WAITING } from "../../src/store/port/limits/limits.js";
import type { Test } from "../suite.js";
import { lane, MINUTE, SUCCEEDED, type World } from "../world.js";
import { ONE, under } from "./limit-world.js";

const RATE: LimitRule = { rate: { limit: 2, per: MINUTE, burst: 2 } };

const PAGE = { limit: 100 };

async function keysOf(w: World, ...[filter, page]: Parameters<World["store"]["limits"]["list"]>): Promise<readonly string[]> {
  return (await w.store.limits.list(filter, page)).map(({ tenant, limit, key }) => `${tenant}/${limit}/${key}`);
}

export function limitListTests(test: Test): void {
  test("keys at which jobs wait are listed with who holds them, who is next and how many wait; others are not", async (w) => {
    await w.add({ options: under(ONE, "free") });
    await w.add({ options: under(ONE, "full") });
    const next = await w.add({ options: under(ONE, "full") });
    await w.add({ options: under(ONE, "full") });
    expect(await w.store.limits.list({}, PAGE)).toEqual([
      { tenant: "acme", limit: "per key", key: "full", rule: ONE, held: 1, waiting: 2, next: { job: next, reason: "concurrency" } },
    ]);
    await w.store.limits.pause({ tenant: "acme", limit: "per key", key: "full" }, MINUTE);
    expect(await w.store.limits.list({}, PAGE)).toMatchObject([
      { key: "full", pausedUntil: w.clock.now() + MINUTE, next: { reason: "concurrency" } },
    ]);
  });

  test("a rate says how many tokens are there, and when it has all of them", async (w) => {
    for (let i = 0; i < 3; i++) await w.add({ options: under(RATE, "r") });
    const [first] = await w.store.limits.list({}, PAGE);
    expect(first).toMatchObject({ held: 0, waiting: 1, tokens: 0, fullAt: w.clock.now() + MINUTE, next: { reason: "rate" } });
  });

  test("a key is listed no more when nobody waits there", async (w) => {
    const running = await w.add({ options: under(ONE, "k") });
    await w.add({ options: under(ONE, "k") });
    expect(await keysOf(w, {}, PAGE)).toEqual(["acme/per key/k"]);
    await w.run(running, SUCCEEDED);
    expect(await keysOf(w, {}, PAGE)).toEqual([]);
  });

  test("they come by tenant, limit and key, in pages, of all, of a tenant, of a limit or of a key alone", async (w) => {
    // Names that begin alike are not alike.
    const limitKeys = ["a/x/1", "a/x/10", "a/x/2", "a/xx/1", "aa/x/1", "b/x/1"];
    for (const limitKey of [...limitKeys].reverse()) {
      const [tenant, limit, key] = limitKey.split("/") as [string, string, string];
      for (let i = 0; i < 2; i++) await w.add({ ...lane(), tenant, options: under(ONE, key, { limit }) });
    }
    expect(await keysOf(w, {}, PAGE)).toEqual(limitKeys);
    expect(await keysOf(w, { tenant: "a" }, PAGE)).toEqual(limitKeys.slice(0, 4));
    expect(await keysOf(w, { tenant: "a", limit: "x" }, PAGE)).toEqual(limitKeys.slice(0, 3));
    expect(await keysOf(w, { tenant: "a", limit: "x", key: "1" }, PAGE)).toEqual(limitKeys.slice(0, 1));
    expect(await keysOf(w, { tenant: "c" }, PAGE)).toEqual([]);
    const seen: string[] = [];
    for (let after: LimitKeyRef | undefined; ; ) {
      const [found] = await w.store.limits.list({ tenant: "a" }, { limit: 1, ...(after === undefined ? {} : { after }) });
      if (found === undefined) break;
      seen.push(`${found.tenant}/${found.limit}/${found.key}`);
      after = found;
    }
    expect(seen).toEqual(limitKeys.slice(0, 4));
  });

  test("a long line is counted to a bound", async (w) => {
    await w.enqueue(...Array.from({ length: MAX_WAITING + 1 }, () => ({ options: under(ONE, "k") })));
    expect(await w.store.limits.list({}, PAGE)).toMatchObject([{ waiting: MAX_WAITING }]);
    expect((await w.store.limits.list({}, PAGE))[0]).not.toHaveProperty("more");
    await w.add({ options: under(ONE, "k") });
    expect(await w.store.limits.list({}, PAGE)).toMatchObject([{ waiting: MAX_WAITING, more: true }]);
  });
}
