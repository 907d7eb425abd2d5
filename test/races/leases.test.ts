import { BOB, FAILED, type HeldJob, LEASE, MINUTE, SUCCEEDED, type World } from "../../packages/pawl/conformance/world.js";
import { ALL_SERVERS, races } from "../support/races/race.js";
import { splitBefore } from "../support/races/racing-session.js";
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
        { run: (w) => w.store.leases.reap(10), ...REAP },
        { run: (w, [first]) => w.settle(first, SUCCEEDED), splits: [SETTLE_SNAPSHOT] },
      ],
    },
    [
      {
        clause: "a reap takes the settled places as they are after the lock (LOCK_EXPIRED)",
        without: [
          { statement: "lock_expired", from: "settled::text", to: "(select s.settled::text from pawl.lease s where s.id = lease.id) as settled" },
        ],
        because: /settled twice|went on after|nowhere|in a row/,
      },
      {
        clause: "settle locks its leases (own … for update)",
        without: [{ statement: "settle", from: "l.worker = $2::int for update", to: "l.worker = $2::int" }],
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
        { run: (w) => w.store.leases.reap(10), ...REAP },
        {
          run: async (w, [first]) => (await w.store.leases.renew(first.worker, [first.claimed.lease], LEASE)).held.length,
          splits: [splitBefore("renew", "id = any($4::bigint[]) and worker = $2")],
        },
      ],
    },
    [
      {
        clause: "LOCK_EXPIRED judges `until` in the statement that locks, so it is judged again under the lock",
        without: [
          { statement: "lock_expired", from: "until <=", to: "id in (select id from pawl.lease where until <=" },
          { statement: "lock_expired", from: "order by until limit $2", to: "order by until limit $2)" },
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
        { run: (w) => w.store.leases.reap(10), ...REAP, stops: ["lock_expired", "unsettled"] },
        { run: (w) => w.store.leases.reap(10), ...REAP, stops: ["lock_expired", "unsettled"] },
      ],
    },
    [
      {
        clause: "LOCK_EXPIRED … for update skip locked",
        without: [{ statement: "lock_expired", from: "for update skip locked", to: "" }],
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
        without: [{ statement: "claim", from: "for update skip locked", to: "" }],
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
        { run: async (w) => (await w.claimSuspect())?.jobs.map(({ id }) => id), splits: [splitBefore("claim_suspect", "u.task = o.task")] },
        {
          run: async (w) => (await w.claimSuspect({ worker: BOB }))?.jobs.map(({ id }) => id),
          splits: [splitBefore("claim_suspect", "u.task = o.task")],
        },
      ],
    },
    [
      {
        clause: "pick … for update skip locked",
        without: [{ statement: "claim_suspect", from: "for update skip locked", to: "" }],
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
        without: [{ statement: "settle", from: "and not r.settled && int4multirange(int4range(r.first, r.last, '[]'))", to: "" }],
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
            statement: "settle",
            from: "l.id, l.unsettled, l.changed_by",
            to: "l.id, (select s.unsettled from pawl.lease s where s.id = l.id) as unsettled, l.changed_by",
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
        without: [{ statement: "lock_leases", from: "for update", to: "" }],
        because: /open jobs|not settled/,
      },
    ],
  );
});
