import { expect, test } from "vitest";
import { ConcurrencyLimiter } from "./concurrency-limiter.js";

test("a limiter lets so many go on at once, in order, and failures make room too", async () => {
  const limiter = new ConcurrencyLimiter(3);
  const order: number[] = [];
  let going = 0;
  let most = 0;
  const all = Array.from({ length: 5_000 }, (_, i) =>
    limiter.run(async () => {
      most = Math.max(most, ++going);
      order.push(i);
      await Promise.resolve();
      going--;
      if (i % 2 === 0) throw new Error("even");
      return i;
    }),
  );
  const settled = await Promise.allSettled(all);
  expect(most).toBe(3);
  expect(order).toEqual(Array.from({ length: 5_000 }, (_, i) => i));
  expect(settled.filter(({ status }) => status === "rejected")).toHaveLength(2_500);
});
