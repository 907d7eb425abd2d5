import { describe, expect, test } from "vitest";
import { type ErrorCode, pawlError } from "../../core/values/error.js";
import { virtualClock } from "../../testing/clock.js";
import { retryUntilUp, type ServerAway } from "./retry-until-up.js";

/** A server that fails so for that long, and then answers; what was said meanwhile, and what came of it. */
function asking(code: ErrorCode, down: number) {
  const clock = virtualClock();
  const began = clock.monotonic();
  const said: ServerAway[] = [];
  const ended = retryUntilUp({ clock, onWaiting: (what) => void said.push(what) }, async () => {
    if (clock.monotonic() - began < down) throw pawlError(code);
    return "up";
  }).catch((error: unknown) => error);
  return { clock, said, ended };
}

describe("what is not up", () => {
  test.each(["store_unreachable", "service_starting", "service_stopping"] as const)("is waited for half a minute: %s", async (code) => {
    const soon = asking(code, 20_000);
    await soon.clock.advance(25_000);
    expect(await soon.ended).toBe("up");
    expect(soon.said[0]).toMatchObject({ for: "server", error: { code }, waited: 0 });
    const never = asking(code, Number.POSITIVE_INFINITY);
    await never.clock.advance(30_100);
    expect(await never.ended).toMatchObject({ code });
  });

  test.each(["store_denied", "unauthenticated", "forbidden"] as const)("is another thing than what refuses us: %s", async (code) => {
    const { clock, said, ended } = asking(code, 20_000);
    await clock.advance(25_000);
    expect(await ended).toMatchObject({ code });
    expect(said).toEqual([]);
  });
});
