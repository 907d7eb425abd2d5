import { expect } from "vitest";
import type { ReplyRef } from "../../src/store/port/access/replies.js";
import { dutiesOf } from "../duties.js";
import type { Test } from "../suite.js";
import { DAY, SECOND, type World } from "../world.js";

const REF: ReplyRef = { tenant: "acme", credential: "a", key: "k" };
const [ONE, TWO] = ["00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"] as const;
const REPLY = { status: 201, body: `{"id":"ü \\"1\\""}`, headers: { location: "/v1/jobs/1" } };
const RULES = { finished: 30 * DAY, dead: 90 * DAY, limit: 1_000 };

const begin = (w: World, token: string, hash = "h", ref = REF) => w.store.replies.begin(ref, { token, hash, patience: 30 * SECOND });
const finish = (w: World, token: string, reply = REPLY) => w.store.replies.finish(REF, { token, reply, keep: DAY });

export function replyTests(test: Test): void {
  test("a request is carried out once, and answered the same ever after", async (w) => {
    expect(await begin(w, ONE)).toEqual({ kind: "begun" });
    expect(await finish(w, ONE)).toBe("kept");
    expect(await begin(w, TWO)).toEqual({ kind: "replied", reply: REPLY });
    expect(await begin(w, ONE)).toEqual({ kind: "replied", reply: REPLY });
    w.clock.advance(DAY - 1);
    expect(await begin(w, TWO)).toEqual({ kind: "replied", reply: REPLY });
  });

  test("while a request is being carried out, the same again is told to wait", async (w) => {
    await begin(w, ONE);
    w.clock.advance(SECOND);
    expect(await begin(w, TWO)).toEqual({ kind: "in_flight", retryIn: 29 * SECOND });
    expect(await begin(w, ONE), "its answer was lost").toEqual({ kind: "begun" });
  });

  test("a key that was used for another request is told apart, answered or not", async (w) => {
    await begin(w, ONE);
    expect(await begin(w, TWO, "other")).toEqual({ kind: "different" });
    await finish(w, ONE);
    expect(await begin(w, TWO, "other")).toEqual({ kind: "different" });
  });

  test("one that does not answer in time is taken for dead, and what it says later changes nothing", async (w) => {
    await begin(w, ONE);
    w.clock.advance(30 * SECOND);
    expect(await begin(w, TWO)).toEqual({ kind: "begun" });
    expect(await finish(w, ONE, { ...REPLY, status: 500 })).toBe("stale");
    await w.store.replies.abandon(REF, ONE);
    expect(await finish(w, TWO)).toBe("kept");
    expect(await begin(w, ONE)).toEqual({ kind: "replied", reply: REPLY });
  });

  test("the first answer stays, however often it is given", async (w) => {
    await begin(w, ONE);
    await finish(w, ONE);
    expect(await finish(w, ONE, { ...REPLY, status: 500 })).toBe("kept");
    await w.store.replies.abandon(REF, ONE);
    expect(await begin(w, TWO)).toEqual({ kind: "replied", reply: REPLY });
  });

  test("a request that did nothing gives its key back", async (w) => {
    await begin(w, ONE);
    await w.store.replies.abandon(REF, TWO);
    expect(await begin(w, TWO)).toMatchObject({ kind: "in_flight" });
    await w.store.replies.abandon(REF, ONE);
    expect(await begin(w, TWO, "other")).toEqual({ kind: "begun" });
  });

  test("keys of other credentials and other tenants are other keys", async (w) => {
    await begin(w, ONE);
    await finish(w, ONE);
    for (const other of [{ tenant: "umbrella" }, { tenant: undefined }, { credential: "b" }, { key: "K" }])
      expect(await begin(w, TWO, "other", { ...REF, ...other })).toEqual({ kind: "begun" });
  });

  test("answers past their time are forgotten, and their keys are free", async (w) => {
    await begin(w, ONE);
    await finish(w, ONE);
    await begin(w, ONE, "h", { ...REF, key: "abandoned by a crash" });
    w.clock.advance(DAY - 1);
    expect((await dutiesOf(w.store).prune(RULES)).forgotten).toBe(1);
    expect(await begin(w, TWO)).toMatchObject({ kind: "replied" });
    w.clock.advance(1);
    expect(await begin(w, TWO, "other"), "before it is forgotten").toEqual({ kind: "begun" });
    w.clock.advance(DAY);
    expect((await dutiesOf(w.store).prune(RULES)).forgotten).toBe(1);
  });
}
