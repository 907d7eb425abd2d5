import { describe, expect, it } from "vitest";
import type { JobId, LeaseId } from "../../core/jobs/id.js";
import type { RecordedEvent } from "../../core/observe/cluster-event.js";
import type { EventName } from "../../core/observe/event.js";
import { Bus } from "../../runtime/process/bus.js";
import { memoryStore } from "../../store/memory/index.js";
import type { Store } from "../../store/port/index.js";
import { virtualClock } from "../../testing.js";
import { ClusterEventRecorder } from "./event-recorder.js";
import { clusterEvents, type EventBatch } from "./event-tail.js";

const LANE = { queue: "default", priority: 5, tenant: "acme", task: "mail" } as const;
const CLAIMED = { worker: "ana", lease: "1" as LeaseId, count: 1 };

/** A process that records, and one that follows, on one store and one clock. */
function processes(store?: Store, discreet = false) {
  const clock = virtualClock();
  const own = store ?? memoryStore({ now: () => clock.now() });
  const bus = new Bus();
  const recorder = new ClusterEventRecorder({ store: own, bus, clock, polled: false, hideFailures: discreet });
  const received: EventBatch[] = [];
  const events = clusterEvents({ store: own, clock, onWatched: () => {}, onError: () => {} });
  const names = () => received.flatMap((batch) => batch.events.map(({ name }) => name));
  return { clock, store: own, bus, recorder, received, events, names, follow: () => events.follow((batch) => received.push(batch)) };
}

describe("events of the whole store", () => {
  it("costs a process nothing while nobody follows", async () => {
    const { clock, bus, recorder } = processes();
    recorder.start();
    await clock.advance(100);
    expect((["jobs.claimed", "attempt.settled", "jobs.enqueued"] as EventName[]).filter((name) => bus.hasListeners(name))).toEqual([]);
    await recorder.stop();
  });

  it("tells what happens in another process, in order, also what happened before it knew whether somebody follows", async () => {
    const { clock, bus, recorder, follow, names } = processes();
    const tail = await follow();
    recorder.start();
    bus.emit("worker.started", { worker: "ana" });
    await clock.advance(1_000);
    bus.emit("jobs.claimed", CLAIMED);
    bus.emit("jobs.promoted", { count: 1 });
    bus.emit("duty.ran", { duty: "prune", count: 1, duration: 1 });
    await clock.advance(1_000);
    expect(names()).toEqual(["worker.started", "jobs.claimed", "jobs.promoted"]);
    await Promise.all([tail.stop(), recorder.stop()]);
  });

  it("records on for a while after nobody follows, so that who comes back has missed nothing, and then stops", async () => {
    const { clock, bus, recorder, follow, events, received } = processes();
    recorder.start();
    const tail = await follow();
    await clock.advance(1_000);
    bus.emit("jobs.claimed", CLAIMED);
    await clock.advance(1_000);
    const { position } = received[0] as EventBatch;
    await tail.stop();
    bus.emit("jobs.promoted", { count: 1 });
    await clock.advance(30_000);
    const page = await events.since(position);
    expect(page).toMatchObject({ gap: false, end: true, batches: [{ events: [{ name: "jobs.promoted" }] }] });
    await clock.advance(60_000);
    expect(bus.hasListeners("jobs.claimed")).toBe(false);
    // Whoever follows now begins anew, and who comes back from before is told so.
    const again = await follow();
    expect(await events.since(position)).toMatchObject({ gap: true });
    await Promise.all([again.stop(), recorder.stop()]);
  });

  it("tells of a gap where what was missed is not kept any more", async () => {
    const { clock, store, bus, recorder, follow, events } = processes();
    recorder.start();
    const tail = await follow();
    const { position } = tail;
    await clock.advance(1_000);
    bus.emit("jobs.promoted", { count: 1 });
    await clock.advance(1_000);
    expect(await events.since(position)).toMatchObject({ gap: false });
    await store.events.trim(0, 0);
    expect(await events.since(position)).toMatchObject({ gap: true, batches: [] });
    await Promise.all([tail.stop(), recorder.stop()]);
  });

  it("tells of a gap where more happens than can be recorded", async () => {
    const { clock, bus, recorder, follow, names } = processes();
    recorder.start();
    const tail = await follow();
    await clock.advance(1_000);
    for (let n = 0; n < 6_000; n++) bus.emit("jobs.claimed", CLAIMED);
    await clock.advance(5_000);
    const told = names();
    expect(told.filter((name) => name === "jobs.claimed")).toHaveLength(5_000);
    expect(told).toContain("gap");
    await Promise.all([tail.stop(), recorder.stop()]);
  });

  it("tells of a gap where a batch could not be stored, and never tells it twice", async () => {
    const clock = virtualClock();
    const { store, fail } = faulty(memoryStore({ now: () => clock.now() }));
    const { bus, recorder, follow, names, ...rest } = processes(store);
    recorder.start();
    const tail = await follow();
    await rest.clock.advance(1_000);
    fail();
    bus.emit("jobs.claimed", CLAIMED);
    await rest.clock.advance(1_000);
    expect(names()).toEqual(["gap"]);
    await Promise.all([tail.stop(), recorder.stop()]);
  });

  it("says nothing of what failures say where payloads are encrypted", async () => {
    const { clock, bus, recorder, follow, received } = processes(undefined, true);
    recorder.start();
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
    const [event] = received.flatMap(({ events }) => events) as [RecordedEvent];
    expect(event.lanes).toEqual([LANE]);
    expect(event.data).toMatchObject({ failure: { kind: "error", name: "Error" } });
    expect(JSON.stringify(event)).not.toContain("4111");
    await Promise.all([tail.stop(), recorder.stop()]);
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
