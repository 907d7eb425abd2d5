import { describe, expect, it } from "vitest";
import { GuessLimit } from "./guess-limit.js";

function failing(limit: GuessLimit, address: string, times: number, now = 0): void {
  for (let n = 0; n < times; n++) limit.failed(address, now);
}

describe("an address that is wrong again and again", () => {
  it("may be wrong 20 times at once, then once in three seconds", () => {
    const limit = new GuessLimit();
    failing(limit, "192.0.2.1", 19);
    expect(limit.wait("192.0.2.1", 0)).toBe(0);
    limit.failed("192.0.2.1", 0);
    expect(limit.wait("192.0.2.1", 0)).toBe(3_000);
    expect(limit.wait("192.0.2.1", 3_000)).toBe(0);
    limit.failed("192.0.2.1", 3_000);
    expect(limit.wait("192.0.2.1", 3_000)).toBe(3_000);
    expect(limit.wait("192.0.2.1", 66_000)).toBe(0);
    failing(limit, "192.0.2.1", 20, 66_000);
    expect(limit.wait("192.0.2.1", 66_000)).toBe(3_000);
  });

  it("is not another one, and is itself however it is written", () => {
    const limit = new GuessLimit();
    failing(limit, "192.0.2.1", 20);
    expect(limit.wait("192.0.2.2", 0)).toBe(0);
    expect(limit.wait("::ffff:192.0.2.1", 0)).toBe(3_000);
    failing(limit, "2001:db8::1", 20);
    expect(limit.wait("2001:0DB8:0000:0000:ffff::9", 0)).toBe(3_000);
    expect(limit.wait("2001:db8:0:1::1", 0)).toBe(0);
    expect(limit.wait("2001:db8:0:0:1:2:3:4%eth0", 0)).toBe(3_000);
  });

  it("costs no memory for long: addresses that are forgiven, and the oldest of too many, are let go", () => {
    const limit = new GuessLimit();
    for (let n = 0; n < 100_001; n++) failing(limit, `a${n}`, 1, 0);
    failing(limit, "a100000", 19, 0);
    expect(limit.wait("a100000", 0)).toBe(3_000);
    limit.failed("late", 1_000_000);
    expect(limit.wait("a100000", 0), "forgotten").toBe(0);
  });
});
