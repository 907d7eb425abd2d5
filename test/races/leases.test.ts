import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { BOB, FAILED, type HeldJob, LEASE, MINUTE, SUCCEEDED, type World } from "../../packages/pawl/conformance/world.js";
import { ALL_SERVERS, races } from "../support/races/race.js";
import { CLAIM_SNAPSHOT, REAP, SETTLE_GUARDED, SETTLE_SNAPSHOT } from "./statement-splits.js";

/** Two jobs under one lease. */
async function twoHeld(w: World): Promise<readonly [HeldJob, HeldJob]> {
  await w.add();
  await w.add();
  return (await w.holdAll()) as unknown as readonly [HeldJob, HeldJob];
}

async function twoExpired(w: World): Promise<readonly [HeldJob, HeldJob]> {
  const held = await twoHeld(w);
  w.clock.advance(LEASE);
  return held;
}

races((race) => {
  // A4 of the catalogue: the reaper must not overwrite what was settled after it looked.
  race(
    "a settlement and a reap of its lease",
    {
      setup: twoExpired,
      racers: [
        { run: (w) => dutiesOf(w.store).reap(10), ...REAP },
        { run: (w, [first]) => w.settle(first, SUCCEEDED), splits: [SETTLE_SNAPSHOT] },
      ],
    },
    [
      {
        clause: "a reap takes the settled places as they are after the lock (LOCK_EXPIRED)",
        without: [{ guard: "settled-after-lock", becomes: "(select s.settled::text from pawl.lease s where s.id = lease.id) as settled" }],
        because: /settled twice|went on after|nowhere|in a row/,
      },
      {
        clause: "settle locks its leases (own … for update)",
        without: [{ guard: "lease-locked" }],
        because: /circle|settled twice|went on after|open jobs|in a row/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "a renewal and a reap of the lease",
    {
      setup: twoExpired,
      racers: [
        { run: (w) => dutiesOf(w.store).reap(10), ...REAP },
        {
          run: async (w, [first]) => (await w.store.leases.renew(first.worker, [first.claimed.lease], LEASE)).held.length,
          splits: [{ at: "renew-snapshot" }],
        },
      ],
    },
    [
      {
        clause: "LOCK_EXPIRED judges `until` in the statement that locks, so it is judged again under the lock",
        without: [
          { guard: "lease-is-expired", becomes: (clause) => clause.replace("and", "and id in (select id from pawl.lease where") },
          { guard: "first-expired-first", becomes: (clause) => `${clause})` },
        ],
        because: /no order of the whole verbs/,
      },
    ],
    ALL_SERVERS,
  );

  // A5 of the catalogue: two reapers, with a barrier between what they read and what they write.
  race(
    "two reaps",
    {
      setup: twoExpired,
      racers: [
        { run: (w) => dutiesOf(w.store).reap(10), ...REAP, stops: ["lock_expired", "unsettled"] },
        { run: (w) => dutiesOf(w.store).reap(10), ...REAP, stops: ["lock_expired", "unsettled"] },
      ],
    },
    [
      {
        clause: "LOCK_EXPIRED … for update skip locked",
        without: [{ guard: "expired-lease-locked" }],
        because: /settled twice|no order/,
      },
    ],
  );

  race(
    "two claims from one lane",
    {
      async setup(w) {
        for (let i = 0; i < 4; i++) await w.add();
      },
      racers: [
        { run: (w) => w.claimIds({ limit: 2 }), splits: [CLAIM_SNAPSHOT] },
        { run: (w) => w.claimIds({ limit: 2, worker: BOB }), splits: [CLAIM_SNAPSHOT] },
      ],
    },
    [
      {
        clause: "pick … for update skip locked",
        without: [{ guard: "claimed-row-locked" }],
        because: /is in lease \d+ and lease/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "two claims of suspects",
    {
      async setup(w) {
        await w.add();
        await w.add();
        for (let crash = 0; crash < 2; crash++) {
          await w.holdAll();
          await w.vanish();
        }
      },
      racers: [
        { run: async (w) => (await w.claimSuspect())?.jobs.map(({ id }) => id), splits: [{ at: "claim-suspect-snapshot" }] },
        {
          run: async (w) => (await w.claimSuspect({ worker: BOB }))?.jobs.map(({ id }) => id),
          splits: [{ at: "claim-suspect-snapshot" }],
        },
      ],
    },
    [
      {
        clause: "pick … for update skip locked",
        without: [{ guard: "suspect-locked" }],
        because: /no order/,
      },
    ],
  );

  race(
    "two settlements of one job under one lease",
    {
      setup: twoHeld,
      racers: [
        { run: (w, [first]) => w.settle(first, FAILED, [MINUTE]), splits: [SETTLE_SNAPSHOT] },
        { run: (w, [first]) => w.settle(first, FAILED, [MINUTE]), splits: [SETTLE_SNAPSHOT] },
      ],
    },
    [
      {
        clause: "a place that is settled is not settled again",
        without: [{ guard: "settled-once" }],
        instead: {
          racers: [
            { run: (w, [first]) => w.settle(first, SUCCEEDED), splits: [SETTLE_SNAPSHOT] },
            { run: (w, [first]) => w.settle(first, SUCCEEDED), splits: [SETTLE_SNAPSHOT] },
          ],
        },
        because: /settled twice|counts say/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "two settlements of two jobs of one lease",
    {
      setup: twoHeld,
      racers: [
        { run: (w, [first]) => w.settle(first, SUCCEEDED), splits: [SETTLE_SNAPSHOT] },
        { run: (w, [, second]) => w.settle(second, SUCCEEDED), splits: [SETTLE_SNAPSHOT] },
      ],
    },
    [
      {
        clause: "locked_lease returns unsettled as it is after the lock",
        without: [
          {
            guard: "unsettled-after-lock",
            becomes: "(select s.unsettled from pawl.lease s where s.id = l.id) as unsettled",
          },
        ],
        because: /open jobs/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "two settlements of two jobs of one lease, of which something was asked",
    {
      async setup(w) {
        const held = await twoHeld(w);
        for (const { job } of held) await w.store.jobs.pause("everyone", job.id);
        return held;
      },
      racers: [
        { run: (w, [first]) => w.settle(first, SUCCEEDED), ...SETTLE_GUARDED },
        { run: (w, [, second]) => w.settle(second, FAILED), ...SETTLE_GUARDED },
      ],
    },
    [
      {
        clause: "LOCK_LEASES … for update, before APPEND lowers open",
        without: [{ guard: "leases-locked-for-steps" }],
        because: /open jobs|not settled/,
      },
    ],
  );
});
