import { expect, test } from "vitest";
import { dueOf, plannedSchedules } from "./schedules.js";

const AT = Date.UTC(2026, 10, 15, 14, 20);

test("schedules of one time of day in every zone are due together where the clocks agree, and those have the first numbers", () => {
  const planned = plannedSchedules({ count: 1_000, at: AT, when: "everywhere" });
  const due = dueOf(planned);
  expect(due).toBeGreaterThan(50);
  expect(due).toBeLessThan(500);
  expect(planned.map(({ input }) => input.n)).toEqual(Array.from({ length: 1_000 }, (_, n) => n));
  expect(planned.findIndex(({ input }) => input.due === undefined)).toBe(due);
  expect(new Set(planned.map(({ times }) => ("cron" in times ? times.cron : ""))).size).toBe(1);
});

test("schedules due over a stretch have a time of their own in it, and a tenant of their own", () => {
  const planned = plannedSchedules({ count: 500, at: AT, when: { over: 60_000 } });
  const times = planned.map(({ input }) => input.due ?? 0);
  expect(Math.min(...times)).toBeGreaterThanOrEqual(AT);
  expect(Math.max(...times)).toBeLessThan(AT + 60_000);
  expect(new Set(planned.map(({ tenant }) => tenant)).size).toBe(500);
  expect(dueOf(planned)).toBe(500);
});
