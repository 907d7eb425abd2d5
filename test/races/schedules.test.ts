import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { HOUR, lane, MINUTE, SECOND, START, type World } from "../../packages/pawl/conformance/world.js";
import type { Definition } from "../../packages/pawl/src/core/schedules/schedule.js";
import { ALL_SERVERS, races } from "../support/races/race.js";
import type { VerbPieces } from "../support/races/racing-session.js";

const REF = { tenant: "acme", name: "s" };
const minutely = (overlap: Definition["overlap"] = "allow", every = MINUTE): Definition => ({
  rule: { kind: "every", every },
  overlap,
  missed: { policy: "latest", tolerance: MINUTE, window: HOUR, max: 100, pace: SECOND },
  job: { lane: lane(), input: "null", options: undefined },
});

async function due(w: World, overlap?: Definition["overlap"]): Promise<void> {
  await w.store.schedules.put([{ ...REF, definition: minutely(overlap) }]);
  w.clock.advance(MINUTE);
}
const tick = async (w: World) => (await dutiesOf(w.store).tick(10, () => w.idSuffix())).jobs;

/** How the schedule ends up, beside its jobs. What was locked by another at its time is looked at again. */
async function ending(w: World): Promise<unknown> {
  await tick(w);
  await dutiesOf(w.store).unblock(100);
  await dutiesOf(w.store).carryOut(100);
  const ticks = await w.store.schedules.ticks(REF, { limit: 100 });
  const { revision, app, next, looksAt, pausedSince } = (await w.store.schedules.get(REF)) ?? {};
  return [{ revision, app, next, looksAt, pausedSince }, ticks.map((entry) => ("at" in entry ? { at: entry.at, way: entry.way } : entry))];
}

const TICK: VerbPieces = { stops: ["due_schedules", "record_ticks"], splits: [{ at: "due-schedules-snapshot" }] };
const BY_NAME: VerbPieces = { stops: ["lock_schedule", "commit"] };
const UNLOCKED_DUE = { guard: "due-schedule-locked" };
/** A second job for a tick goes unnoticed. */
const UNPROVEN = {
  guard: "one-tick-each",
  becomes: (rows: string) => `${rows} on conflict do nothing`,
};

races((race) => {
  race(
    "two processes at the same tick (D1)",
    {
      setup: (w) => due(w),
      racers: [
        { run: tick, ...TICK },
        { run: tick, ...TICK },
      ],
      afterwards: ending,
    },
    [
      {
        clause: "due schedules are locked until the commit, and the index refuses a second job",
        without: [UNLOCKED_DUE, UNPROVEN],
        because: /no order/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "three processes at the same tick",
    {
      setup: (w) => due(w, "skip"),
      racers: Array.from({ length: 3 }, () => ({ run: tick, stops: ["record_ticks"] })),
      afterwards: ending,
    },
    [],
  );

  race(
    "a tick and a pause",
    {
      setup: (w) => due(w),
      racers: [
        { run: tick, ...TICK },
        { run: (w) => w.store.schedules.pause(REF), ...BY_NAME },
      ],
      afterwards: ending,
    },
    [{ clause: "due schedules are locked until the commit", without: [UNLOCKED_DUE], because: /no order/ }],
  );

  race(
    "a tick and the removal of its schedule",
    {
      setup: (w) => due(w),
      racers: [
        { run: tick, ...TICK },
        { run: (w) => w.store.schedules.delete(REF), ...BY_NAME },
      ],
      afterwards: ending,
    },
    [],
  );

  race(
    "a tick and a deploy that changes its schedule",
    {
      setup: (w) => due(w),
      racers: [
        { run: tick, ...TICK },
        { run: (w) => w.store.schedules.put([{ ...REF, definition: minutely("allow", HOUR) }], "shop"), stops: ["lock_schedules", "commit"] },
      ],
      afterwards: ending,
    },
    [],
  );

  race(
    "a tick and a backfill of that tick",
    {
      setup: (w) => due(w),
      racers: [
        { run: tick, ...TICK },
        {
          run: (w) => w.store.schedules.backfill(REF, { ticks: [START, START + MINUTE], after: 0, pace: 0, idSuffix: () => w.idSuffix() }),
          stops: ["lock_schedule", "fired_among", "commit"],
        },
      ],
      afterwards: ending,
    },
    [
      {
        clause: "a backfill locks its schedule",
        without: [{ guard: "schedule-locked" }],
        because: /no order/,
      },
      {
        clause: "a tick that was backfilled before is looked up when the index refuses it",
        without: [{ guard: "backfilled-are-passed-by", becomes: ") t where false" }],
        because: /duplicate key/,
      },
    ],
  );

  race(
    "two deploys of the same new schedule (D3)",
    {
      setup: async () => undefined,
      racers: Array.from({ length: 2 }, () => ({
        run: (w: World) => w.store.schedules.put([{ ...REF, definition: minutely() }], "shop"),
        stops: ["lock_schedules", "commit"],
      })),
      afterwards: ending,
    },
    [
      {
        clause: "one deploy after the other",
        without: [{ guard: "puts-take-turns", becomes: "1" }],
        because: /no order/,
      },
    ],
  );
});
