import type { NewAudit } from "pawl/service";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { DenialAudit } from "./audit-denials.js";
import { ANONYMOUS } from "./audit-request.js";

const MINUTE = 60_000;
let entries: NewAudit[];
let denialAudit: DenialAudit;

beforeEach(() => {
  vi.useFakeTimers();
  entries = [];
  denialAudit = new DenialAudit({ record: async (entry) => void entries.push(entry) }, () => {});
});
afterEach(async () => {
  await denialAudit.stop();
  vi.useRealTimers();
});

const denial = (actor: string, address = "192.0.2.1"): NewAudit => ({
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
    for (let n = 0; n < 1_000; n++) await denialAudit.record(denial(ANONYMOUS));
    await denialAudit.record(denial(ANONYMOUS, "192.0.2.2"));
    expect(entries.map(({ address, details }) => [address, details?.count])).toEqual([
      ["192.0.2.1", undefined],
      ["192.0.2.2", undefined],
    ]);
    await vi.advanceTimersByTimeAsync(MINUTE);
    expect(entries.slice(2)).toEqual([counted(denial(ANONYMOUS), 999)]);
    await denialAudit.record(denial(ANONYMOUS));
    expect(entries).toHaveLength(3);
    await vi.advanceTimersByTimeAsync(MINUTE);
    expect(entries.slice(3)).toEqual([counted(denial(ANONYMOUS), 1)]);
    await vi.advanceTimersByTimeAsync(MINUTE);
    await denialAudit.record(denial(ANONYMOUS));
    expect(entries.slice(4), "after a quiet minute").toEqual([denial(ANONYMOUS)]);
  });

  test("by name where it is known: the first ten of a minute, and the number of the others", async () => {
    for (let n = 0; n < 15; n++) await denialAudit.record(denial("key:a"));
    await denialAudit.record(denial("key:b"));
    expect(entries.map(({ actor }) => actor)).toEqual([...Array<string>(10).fill("key:a"), "key:b"]);
    await denialAudit.stop();
    expect(entries.slice(11), "before it stops").toEqual([counted(denial("key:a"), 5)]);
  });

  test("also of more addresses than have entries of their own, together", async () => {
    for (let n = 0; n < 1_000; n++) await denialAudit.record(denial(ANONYMOUS, `2001:db8::${n}`));
    expect(entries).toHaveLength(101);
    await vi.advanceTimersByTimeAsync(MINUTE);
    const { address: _, ...nowhere } = denial(ANONYMOUS);
    expect(entries.slice(101)).toEqual([counted(nowhere, 899)]);
  });
});
