import type { NewAudit } from "pawl";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Denials } from "./denials.js";
import { ANONYMOUS } from "./guard.js";

const MINUTE = 60_000;
let told: NewAudit[];
let denials: Denials;

beforeEach(() => {
  vi.useFakeTimers();
  told = [];
  denials = new Denials({ record: async (entry) => void told.push(entry) }, () => {});
});
afterEach(async () => {
  await denials.stop();
  vi.useRealTimers();
});

const denied = (actor: string, address = "192.0.2.1"): NewAudit => ({
  actor,
  tenant: actor === ANONYMOUS ? undefined : "acme",
  action: "jobs.list",
  outcome: "denied",
  details: { reason: "forbidden" },
  request: "r",
  address,
});
const counted = (entry: NewAudit, count: number): NewAudit => ({ ...entry, details: { ...entry.details, count } });

describe("the audit hears of those who were not let", () => {
  test("by address where nobody knows who it was: one entry a minute, with their number", async () => {
    for (let n = 0; n < 1_000; n++) await denials.tell(denied(ANONYMOUS));
    await denials.tell(denied(ANONYMOUS, "192.0.2.2"));
    expect(told.map(({ address, details }) => [address, details?.count])).toEqual([
      ["192.0.2.1", undefined],
      ["192.0.2.2", undefined],
    ]);
    await vi.advanceTimersByTimeAsync(MINUTE);
    expect(told.slice(2)).toEqual([counted(denied(ANONYMOUS), 999)]);
    await denials.tell(denied(ANONYMOUS));
    expect(told).toHaveLength(3);
    await vi.advanceTimersByTimeAsync(MINUTE);
    expect(told.slice(3)).toEqual([counted(denied(ANONYMOUS), 1)]);
    await vi.advanceTimersByTimeAsync(MINUTE);
    await denials.tell(denied(ANONYMOUS));
    expect(told.slice(4), "after a quiet minute").toEqual([denied(ANONYMOUS)]);
  });

  test("by name where it is known: the first ten of a minute, and the number of the others", async () => {
    for (let n = 0; n < 15; n++) await denials.tell(denied("key:a"));
    await denials.tell(denied("key:b"));
    expect(told.map(({ actor }) => actor)).toEqual([...Array<string>(10).fill("key:a"), "key:b"]);
    await denials.stop();
    expect(told.slice(11), "before it stops").toEqual([counted(denied("key:a"), 5)]);
  });

  test("also of more addresses than have entries of their own, together", async () => {
    for (let n = 0; n < 1_000; n++) await denials.tell(denied(ANONYMOUS, `2001:db8::${n}`));
    expect(told).toHaveLength(101);
    await vi.advanceTimersByTimeAsync(MINUTE);
    const { address: _, ...nowhere } = denied(ANONYMOUS);
    expect(told.slice(101)).toEqual([counted(nowhere, 899)]);
  });
});
