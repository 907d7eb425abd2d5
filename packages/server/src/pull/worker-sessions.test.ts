import { openTest, type TestPawl } from "pawl/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WorkerSessions } from "./worker-sessions.js";

let world: TestPawl;
let sessions: WorkerSessions;
beforeEach(async () => {
  world = await openTest({ work: false, maintenance: false });
  sessions = new WorkerSessions(world.pawl);
});
afterEach(async () => {
  await sessions.stop();
  await world.close();
});

const caller = (name: string) => ({ name, tenant: "acme", grants: [{ role: "worker" as const }] });
const worker = (n: number) => ({ name: "w", instance: `00000000-0000-4000-8000-${String(n).padStart(12, "0")}` });
const claim = (name: string, n: number) => sessions.claiming(caller(name), worker(n), async () => "claimed");

describe("a worker's session", () => {
  test("begins with a claim, and with nothing else", async () => {
    expect(await sessions.with(caller("a"), worker(1), (host) => host.renew([]))).toMatchObject({ held: [] });
    expect(sessions.size).toBe(0);
    const claimed = await sessions.claiming(caller("a"), worker(1), async (host) => host);
    expect(await sessions.with(caller("a"), worker(1), async (host) => host === claimed)).toBe(true);
    expect(sessions.size).toBe(1);
  });

  test("is one of 100 of its credential, and takes no room from others", async () => {
    for (let n = 0; n < 100; n++) await claim("a", n);
    await expect(claim("a", 100)).rejects.toMatchObject({ code: "too_many_requests" });
    expect([await claim("a", 99), await claim("b", 100)]).toEqual(["claimed", "claimed"]);
    await sessions.retire(caller("a"), worker(0));
    expect(await claim("a", 100)).toBe("claimed");
  });

  test("of the tenant with the most is forgotten for that of another, where no more can be hosted", async () => {
    await using small = new (class extends WorkerSessions {
      [Symbol.asyncDispose] = () => this.stop();
    })(world.pawl, 3);
    const of = (name: string, tenant: string) => ({ ...caller(name), tenant });
    const begin = (name: string, tenant: string, n: number) => small.claiming(of(name, tenant), worker(n), async (host) => host);
    const [first] = [await begin("a", "greedy", 1), await begin("b", "greedy", 2), await begin("c", "greedy", 3)];
    await begin("d", "other", 4);
    expect(small.size).toBe(3);
    expect(await small.with(of("a", "greedy"), worker(1), async (host) => host === first)).toBe(false);
    await expect(begin("e", "greedy", 5)).rejects.toMatchObject({ code: "too_many_requests" });
  });
});
