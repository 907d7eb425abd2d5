import { expect, test } from "vitest";
import { LongPolls } from "./long-polls.js";

const of = (tenant: string, name: string) => ({ name, tenant, grants: [] });
const never = new AbortController().signal;

/** A wait that lasts until it is told to end, and what became of it. */
function waiting(polls: LongPolls, tenant: string, name: string, signal = never) {
  return polls
    .keepOpen(
      tenant === "" ? { ...of("", name), tenant: undefined } : of(tenant, name),
      signal,
      (ended) =>
        new Promise((_, reject) => {
          const end = () => reject(ended.reason);
          if (ended.aborted) end();
          else ended.addEventListener("abort", end);
        }),
    )
    .then(
      () => "answered",
      (error: { code?: string }) => error.code ?? String(error),
    );
}

test("a credential has so many waits at a time, and its other waits go on", async () => {
  const polls = new LongPolls("a wait", { perCredential: 2 });
  const disconnect = new AbortController();
  const first = waiting(polls, "acme", "one", disconnect.signal);
  void waiting(polls, "acme", "one");
  expect(await waiting(polls, "acme", "one")).toBe("too_many_requests");
  void waiting(polls, "acme", "two");
  expect(polls.size).toBe(3);
  disconnect.abort(new Error("gone"));
  expect(await first).toContain("gone");
  void waiting(polls, "acme", "one");
  expect(polls.size).toBe(3);
});

test("when all room is taken, the youngest of the owner that has most gives way, and nobody has less than a fair share", async () => {
  const polls = new LongPolls("a wait", { total: 4 });
  const greedy = ["a", "b", "c", "d"].map((key) => waiting(polls, "greedy", key));
  void waiting(polls, "other", "x");
  expect(await greedy[3]).toBe("too_many_requests");
  void waiting(polls, "other", "x");
  expect(await greedy[2]).toBe("too_many_requests");
  expect(await waiting(polls, "other", "x"), "both have two of four").toBe("too_many_requests");
  expect(polls.size).toBe(4);
});

test("a wait that is answered makes room", async () => {
  const polls = new LongPolls("a wait", { perCredential: 1 });
  expect(await polls.keepOpen(of("acme", "one"), never, async () => 7)).toBe(7);
  expect(await polls.keepOpen(of("acme", "one"), never, async () => 8)).toBe(8);
  expect(polls.size).toBe(0);
});
