import { beforeEach, describe, expect, it } from "vitest";
import type { LiveLanes } from "../../port/claim/lanes.js";
import { IdlePolls } from "./idle-polls.js";

const NOTHING: LiveLanes = { lanes: [], suspects: false, version: "1" };

describe("an idle process that polls", () => {
  let now: number;
  let seen: number;
  let hears: boolean;
  let asked: number;
  let idlePolls: IdlePolls;
  const look = async (nothing = true) => {
    const before = asked;
    await idlePolls.poll(async () => {
      asked++;
      return { live: NOTHING, nothing };
    });
    return asked > before ? "asked" : "spared";
  };

  beforeEach(() => {
    [now, seen, hears, asked] = [0, 7, true, 0];
    idlePolls = new IdlePolls(
      () => now,
      () => seen,
      () => hears,
    );
  });

  it("asks once while polls see no new number", async () => {
    expect(await look()).toBe("asked");
    expect(idlePolls.onMaintenancePoll(7)).toBe(false);
    expect(await look()).toBe("spared");
  });

  it("asks each time without a poll, and when the last one is long ago", async () => {
    await look();
    expect(await look()).toBe("asked");
    idlePolls.onMaintenancePoll(7);
    now = 2_500;
    expect(await look()).toBe("asked");
  });

  it("asks again after a wakeup, and after one that came while it looked", async () => {
    await look();
    idlePolls.onMaintenancePoll(7);
    idlePolls.onWakeup();
    expect(await look()).toBe("asked");
    idlePolls.onWakeup();
    await idlePolls.poll(async () => {
      idlePolls.onWakeup();
      return { live: NOTHING, nothing: true };
    });
    expect(await look()).toBe("asked");
  });

  it("is told of work by the poll that sees a number nobody has seen, if it looks for any", async () => {
    expect(idlePolls.onMaintenancePoll(8)).toBe(false);
    await look();
    expect(idlePolls.onMaintenancePoll(8)).toBe(true);
    expect(await look()).toBe("asked");
    seen = 8;
    expect(idlePolls.onMaintenancePoll(8)).toBe(false);
    expect(await look()).toBe("spared");
  });

  it("is not told while it claims: then it looks by itself", async () => {
    await look();
    idlePolls.onClaim();
    now = 900;
    expect(idlePolls.onMaintenancePoll(8)).toBe(false);
    now = 901;
    expect(idlePolls.onMaintenancePoll(8)).toBe(true);
  });

  it("asks again while something was found, even if it was not for whoever asked", async () => {
    await look(false);
    idlePolls.onMaintenancePoll(7);
    expect(await look()).toBe("asked");
  });

  it("asks every ten seconds all the same, and each time where wakeups do not arrive", async () => {
    await look();
    now = 9_999;
    idlePolls.onMaintenancePoll(7);
    expect(await look()).toBe("spared");
    now = 10_000;
    expect(await look()).toBe("asked");
    hears = false;
    expect(await look()).toBe("asked");
  });
});
