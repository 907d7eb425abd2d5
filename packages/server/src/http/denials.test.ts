import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { AuditEntry } from "./audit.js";
import { Denials } from "./denials.js";

const MINUTE = 60_000;
let told: AuditEntry[];
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

const denied = (who: string | undefined, address = "192.0.2.1"): AuditEntry => ({
  who,
  tenant: who === undefined ? undefined : "acme",
  action: "jobs.list",
  subject: {},
  decision: "denied",
  reason: "forbidden",
  address,
  request: "r",
});

describe("the audit hears of those who were not let", () => {
  test("by address where nobody knows who it was: one entry a minute, with their number", async () => {
    for (let n = 0; n < 1_000; n++) await denials.tell(denied(undefined));
    await denials.tell(denied(undefined, "192.0.2.2"));
    expect(told.map(({ address, count }) => [address, count])).toEqual([
      ["192.0.2.1", undefined],
      ["192.0.2.2", undefined],
    ]);
    await vi.advanceTimersByTimeAsync(MINUTE);
    expect(told.slice(2)).toEqual([{ ...denied(undefined), count: 999 }]);
    await denials.tell(denied(undefined));
    expect(told).toHaveLength(3);
    await vi.advanceTimersByTimeAsync(MINUTE);
    expect(told.slice(3)).toEqual([{ ...denied(undefined), count: 1 }]);
    await vi.advanceTimersByTimeAsync(MINUTE);
    await denials.tell(denied(undefined));
    expect(told.slice(4), "after a quiet minute").toEqual([denied(undefined)]);
  });

  test("by name where it is known: the first ten of a minute, and the number of the others", async () => {
    for (let n = 0; n < 15; n++) await denials.tell(denied("key:a"));
    await denials.tell(denied("key:b"));
    expect(told.map(({ who }) => who)).toEqual([...Array<string>(10).fill("key:a"), "key:b"]);
    await denials.stop();
    expect(told.slice(11), "before it stops").toEqual([{ ...denied("key:a"), count: 5 }]);
  });

  test("also of more addresses than have entries of their own, together", async () => {
    for (let n = 0; n < 1_000; n++) await denials.tell(denied(undefined, `2001:db8::${n}`));
    expect(told).toHaveLength(101);
    await vi.advanceTimersByTimeAsync(MINUTE);
    expect(told.slice(101)).toEqual([{ ...denied(undefined, ""), count: 899 }]);
  });
});
