import { describe, expect, it } from "vitest";
import type { EventName } from "../core/event.js";
import type { JobId, LeaseId } from "../core/id.js";
import type { ToldEvent } from "../core/told.js";
import { Bus } from "../runtime/bus.js";
import { memoryStore } from "../store/memory/index.js";
import type { Store } from "../store/port.js";
import { virtualClock } from "../testing/index.js";
import { clusterEvents, type EventBatch } from "./follower.js";
import { Teller } from "./teller.js";

const LANE = { queue: "default", band: 5, tenant: "acme", task: "mail" } as const;
const CLAIMED = { worker: "ana", lease: "1" as LeaseId, count: 1 };

/** A process that records, and one that follows, on one store and one clock. */
function processes(store?: Store, discreet = false) {
  const clock = virtualClock();
  const own = store ?? memoryStore({ now: () => clock.now() });
  const bus = new Bus();
  const teller = new Teller({ store: own, bus, clock, pulsed: false, discreet });
  const heard: EventBatch[] = [];
  const events = clusterEvents({ store: own, clock, onWatched: () => {}, onError: () => {} });
  const names = () => heard.flatMap((batch) => batch.events.map(({ name }) => name));
  return { clock, store: own, bus, teller, heard, events, names, follow: () => events.follow((batch) => heard.push(batch)) };
}

describe("events of the whole store", () => {
  it("costs a process nothing while nobody follows", async () => {
    const { clock, bus, teller } = processes();
    teller.start();
    await clock.advance(100);
    expect((["jobs.claimed", "attempt.settled", "jobs.enqueued"] as EventName[]).filter((name) => bus.hears(name))).toEqual([]);
    await teller.stop();
  });

  it("tells what happens in another process, in order, also what happened before it knew whether somebody follows", async () => {
    const { clock, bus, teller, follow, names } = processes();
    const tail = await follow();
    teller.start();
    bus.emit("worker.started", { worker: "ana" });
    await clock.advance(1_000);
    bus.emit("jobs.claimed", CLAIMED);
    bus.emit("jobs.promoted", { count: 1 });
    bus.emit("duty.ran", { duty: "prune", count: 1, duration: 1 });
    await clock.advance(1_000);
    expect(names()).toEqual(["worker.started", "jobs.claimed", "jobs.promoted"]);
    await Promise.all([tail.stop(), teller.stop()]);
  });

  it("records on for a while after nobody follows, so that who comes back has missed nothing, and then stops", async () => {
    const { clock, bus, teller, follow, events, heard } = processes();
    teller.start();
    const tail = await follow();
    await clock.advance(1_000);
    bus.emit("jobs.claimed", CLAIMED);
    await clock.advance(1_000);
    const { position } = heard[0] as EventBatch;
    await tail.stop();
    bus.emit("jobs.promoted", { count: 1 });
    await clock.advance(30_000);
    const page = await events.since(position);
    expect(page).toMatchObject({ gap: false, end: true, batches: [{ events: [{ name: "jobs.promoted" }] }] });
    await clock.advance(60_000);
    expect(bus.hears("jobs.claimed")).toBe(false);
    // Whoever follows now begins anew, and who comes back from before is told so.
    const again = await follow();
    expect(await events.since(position)).toMatchObject({ gap: true });
    await Promise.all([again.stop(), teller.stop()]);
  });

  it("tells of a gap where what was missed is not kept any more", async () => {
    const { clock, store, bus, teller, follow, events } = processes();
    teller.start();
    const tail = await follow();
    const { position } = tail;
    await clock.advance(1_000);
    bus.emit("jobs.promoted", { count: 1 });
    await clock.advance(1_000);
    expect(await events.since(position)).toMatchObject({ gap: false });
    await store.events.trim(0, 0);
    expect(await events.since(position)).toMatchObject({ gap: true, batches: [] });
    await Promise.all([tail.stop(), teller.stop()]);
  });

  it("tells of a gap where more happens than can be recorded", async () => {
    const { clock, bus, teller, follow, names } = processes();
    teller.start();
    const tail = await follow();
    await clock.advance(1_000);
    for (let n = 0; n < 6_000; n++) bus.emit("jobs.claimed", CLAIMED);
    await clock.advance(5_000);
    const told = names();
    expect(told.filter((name) => name === "jobs.claimed")).toHaveLength(5_000);
    expect(told).toContain("gap");
    await Promise.all([tail.stop(), teller.stop()]);
  });

  it("tells of a gap where a batch could not be stored, and never tells it twice", async () => {
    const clock = virtualClock();
    const { store, fail } = faulty(memoryStore({ now: () => clock.now() }));
    const { bus, teller, follow, names, ...rest } = processes(store);
    teller.start();
    const tail = await follow();
    await rest.clock.advance(1_000);
    fail();
    bus.emit("jobs.claimed", CLAIMED);
    await rest.clock.advance(1_000);
    expect(names()).toEqual(["gap"]);
    await Promise.all([tail.stop(), teller.stop()]);
  });

  it("says nothing of what failures say where payloads are encrypted", async () => {
    const { clock, bus, teller, follow, heard } = processes(undefined, true);
    teller.start();
    const tail = await follow();
    await clock.advance(1_000);
    bus.emit("attempt.settled", {
      job: "j" as JobId,
      lane: LANE,
      attempt: 1,
      worker: "ana",
      outcome: "failed",
      next: "dead",
      duration: 1,
      sinceDue: 1,
      failure: { kind: "error", name: "Error", message: "card 4111" } as never,
    });
    await clock.advance(1_000);
    const [event] = heard.flatMap(({ events }) => events) as [ToldEvent];
    expect(event.lanes).toEqual([LANE]);
    expect(event.data).toMatchObject({ failure: { kind: "error", name: "Error" } });
    expect(JSON.stringify(event)).not.toContain("4111");
    await Promise.all([tail.stop(), teller.stop()]);
  });
});

/** The next batch of events fails, as if its answer were lost. */
function faulty(inner: Store) {
  let failing = false;
  const store: Store = {
    ...inner,
    events: {
      ...inner.events,
      async append(entries) {
        if (!failing) return inner.events.append(entries);
        failing = false;
        throw new Error("lost");
      },
    },
  };
  return {
    store,
    fail: () => {
      failing = true;
    },
  };
}
