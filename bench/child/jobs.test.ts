import { describe, expect, test } from "vitest";
import { chunked, inParallel, planned } from "./jobs.js";

describe("jobs", () => {
  test("they are numbered from where they were asked to begin", () => {
    expect([...planned({ from: 5, count: 3 })].map(({ input }) => input)).toEqual([{ n: 5 }, { n: 6 }, { n: 7 }]);
  });

  test("due times are spread evenly over their stretch, and in no order", () => {
    const due = [...planned({ count: 1_000, due: { start: 10_000, over: 1_000 } })].map(({ input }) => input.due ?? 0);
    const perTenth = Array.from({ length: 10 }, (_, tenth) => due.filter((at) => Math.min(9, Math.floor((at - 10_000) / 100)) === tenth).length);
    expect(Math.min(...perTenth)).toBeGreaterThan(90);
    expect(Math.max(...perTenth)).toBeLessThan(110);
    expect(due).not.toEqual([...due].sort((a, b) => a - b));
  });

  test("half of all jobs are the first tenant's, and every tenant has some", () => {
    const tenants = [...planned({ count: 2_000, tenants: 100 })].map(({ tenant }) => tenant);
    expect(tenants.filter((tenant) => tenant === "tenant-0")).toHaveLength(1_000);
    expect(new Set(tenants).size).toBe(100);
  });

  test("newcomers take turns", () => {
    expect([...planned({ count: 4, newcomers: 3 })].map(({ tenant }) => tenant)).toEqual(["newcomer-0", "newcomer-1", "newcomer-2", "newcomer-0"]);
  });

  test("the last chunk holds what is left", () => {
    expect([...chunked([1, 2, 3, 4, 5], 2)]).toEqual([[1, 2], [3, 4], [5]]);
  });

  test("no more are worked on at a time than asked for, and a failure is thrown", async () => {
    let now = 0;
    let most = 0;
    await inParallel(Array.from({ length: 20 }), 3, async () => {
      most = Math.max(most, ++now);
      await Promise.resolve();
      now--;
    });
    expect(most).toBe(3);
    await expect(inParallel([1], 2, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  });
});
