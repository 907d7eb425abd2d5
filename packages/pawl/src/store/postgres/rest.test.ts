import { beforeEach, describe, expect, it } from "vitest";
import type { LiveLanes } from "../port-lanes.js";
import { Rest } from "./rest.js";

const NOTHING: LiveLanes = { lanes: [], suspects: false, mark: "1" };

describe("an idle process that pulses", () => {
  let now: number;
  let seen: number;
  let hears: boolean;
  let asked: number;
  let rest: Rest;
  const look = async (nothing = true) => {
    const before = asked;
    await rest.look(async () => {
      asked++;
      return { live: NOTHING, nothing };
    });
    return asked > before ? "asked" : "spared";
  };

  beforeEach(() => {
    [now, seen, hears, asked] = [0, 7, true, 0];
    rest = new Rest(
      () => now,
      () => seen,
      () => hears,
    );
  });

  it("asks once while pulses see no new number", async () => {
    expect(await look()).toBe("asked");
    expect(rest.pulsed(7)).toBe(false);
    expect(await look()).toBe("spared");
  });

  it("asks each time without a pulse, and when the last one is long ago", async () => {
    await look();
    expect(await look()).toBe("asked");
    rest.pulsed(7);
    now = 2_500;
    expect(await look()).toBe("asked");
  });

  it("asks again after a wake-up, and after one that came while it looked", async () => {
    await look();
    rest.pulsed(7);
    rest.hear();
    expect(await look()).toBe("asked");
    rest.hear();
    await rest.look(async () => {
      rest.hear();
      return { live: NOTHING, nothing: true };
    });
    expect(await look()).toBe("asked");
  });

  it("is told of work by the pulse that sees a number nobody has seen, if it looks for any", async () => {
    expect(rest.pulsed(8)).toBe(false);
    await look();
    expect(rest.pulsed(8)).toBe(true);
    expect(await look()).toBe("asked");
    seen = 8;
    expect(rest.pulsed(8)).toBe(false);
    expect(await look()).toBe("spared");
  });

  it("is not told while it claims: then it looks by itself", async () => {
    await look();
    rest.claims();
    now = 900;
    expect(rest.pulsed(8)).toBe(false);
    now = 901;
    expect(rest.pulsed(8)).toBe(true);
  });

  it("asks again while something was found, even if it was not for whoever asked", async () => {
    await look(false);
    rest.pulsed(7);
    expect(await look()).toBe("asked");
  });

  it("asks every ten seconds all the same, and each time where wake-ups do not arrive", async () => {
    await look();
    now = 9_999;
    rest.pulsed(7);
    expect(await look()).toBe("spared");
    now = 10_000;
    expect(await look()).toBe("asked");
    hears = false;
    expect(await look()).toBe("asked");
  });
});
