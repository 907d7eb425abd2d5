import { expect } from "vitest";
import type { JobOptions } from "../../packages/pawl/src/core/job.js";
import type { LimitRule } from "../../packages/pawl/src/core/limit.js";
import type { UniqueRule } from "../../packages/pawl/src/core/unique.js";
import { everyJob } from "../../packages/pawl/src/store/conformance/invariants.js";
import { DAY, type Held, HOUR, LEASE, SUCCEEDED, type World } from "../../packages/pawl/src/store/conformance/world.js";
import { EVERYWHERE, races } from "../support/race.js";
import { type Pieces, splitBefore } from "../support/racing-session.js";
import { HAND_OVER_DRAWN, HAND_OVER_SNAPSHOT, REAP, TAKE_ANYWHERE, TAKE_SNAPSHOT } from "./pieces.js";

const RULE: LimitRule = { concurrency: 1 };
const GATE = { tenant: "acme", limit: "per key", key: "k" };
const options: JobOptions = { limits: [{ limit: GATE.limit, key: GATE.key, rule: RULE }] };
const two: JobOptions = { limits: [{ limit: GATE.limit, key: GATE.key, rule: { concurrency: 2 } }] };
const serial: JobOptions = { limits: [{ limit: GATE.limit, key: GATE.key, rule: { serial: true } }] };

const ONLY: UniqueRule = { key: "only", hold: "pending", onConflict: "replace" };
const KEEP = { finished: 30 * DAY, dead: 90 * DAY, limit: 100 };

/** When it is stored, and when it was read how the gate stands. */
const ENQUEUE: Pieces = { stops: ["put", "read_gates"] };
const SETTLE: Pieces = { stops: ["settle_limited", "read_gates"] };

/** It has another gate to pass as well: no place is handed over to such a one. */
const twoGates: JobOptions = { limits: [...(options.limits ?? []), { limit: "other", key: "k", rule: RULE }] };

/** One of the key runs, and another one waits. */
async function oneRuns(w: World): Promise<Held> {
  await w.add({ options });
  const held = await w.hold();
  await w.add({ options });
  return held;
}

/** Nobody holds a place that has left, and no more have one than may; and while there is room, nobody waits. */
async function neitherExceededNorLeaked(w: World): Promise<void> {
  const jobs = new Map((await everyJob(w.store)).map((job) => [job.id, job.state]));
  const { holders = [], next } = (await w.store.limits.get(GATE)) ?? {};
  const over = holders.filter((job) => ["succeeded", "dead", "cancelled"].includes(jobs.get(job) ?? "gone"));
  expect(over, "leaked").toEqual([]);
  expect([...jobs.values()].filter((state) => state === "ready" || state === "running").length, "exceeded").toBeLessThanOrEqual(1);
  if (holders.length === 0) expect(next, "waits before an open gate").toBeUndefined();
  const placeless = [...jobs].filter(([job, state]) => (state === "ready" || state === "running") && !holders.includes(job));
  expect(placeless, "let in without a place").toEqual([]);
}
/** What knocks and was not answered is for the duty. */
const afterwards = (w: World) => w.store.limits.admit(100).then(() => undefined);
const holds = neitherExceededNorLeaked;

const LOCKED = {
  clause: "LOCK_GATES locks the gate before anybody counts who is inside",
  // Who takes away the same knocks waits for the other as well.
  without: [
    { statement: "lock_gates", from: "order by key for update", to: "order by key" },
    {
      statement: "read_gates",
      from: "delete from pawl.knock where key = any($2::text[])",
      to: "delete from pawl.knock where id in (select id from pawl.knock where key = any($2::text[]) for update skip locked)",
    },
  ],
  because: /exceeded|no order/,
};

/** As if a settlement believed what it saw of a line, whoever had left it meanwhile. */
const BELIEVING = [
  { statement: "settle_limited", from: "limit p.count for update skip locked", to: "limit p.count" },
  {
    statement: "settle_limited",
    from: "from handed order by rank, place",
    to: "from (select p.*, n.key from next n join pawl.parked p on p.id = n.id) n order by rank, place",
  },
  { statement: "settle_limited", from: "select 'key', key, id from handed", to: "select 'key', key, id from next on conflict do nothing" },
];

races((race) => {
  race(
    "two enqueues of one key that has room for one",
    {
      // The gate is there: making it would make one wait for the other.
      setup: async (w) => w.run(await w.add({ options })),
      racers: [
        { run: (w) => w.enqueue({ options }), ...ENQUEUE },
        { run: (w) => w.enqueue({ options }), ...ENQUEUE },
      ],
      afterwards,
      holds,
      notSerial: "which of them is let in depends on who came first to the gate, not on who was stored first",
    },
    [LOCKED],
    EVERYWHERE,
  );

  race(
    "a settlement that frees a key for which nobody waits, and an enqueue of two",
    {
      async setup(w) {
        await w.add({ options });
        return w.hold();
      },
      racers: [
        { run: (w, held) => w.settle(held, SUCCEEDED), ...SETTLE },
        { run: (w) => w.enqueue({ options }, { options }), ...ENQUEUE },
      ],
      afterwards,
      holds,
    },
    [
      LOCKED,
      {
        clause: "a settlement knocks at what it frees (and whoever knocks, looks)",
        without: [{ statement: "settle_limited", from: "where kind in ('key', 'serial', 'rate')", to: "where false" }],
        because: /waits before an open gate|no order/,
      },
    ],
    EVERYWHERE,
  );

  race(
    "a settlement that hands its place over, and an enqueue",
    {
      async setup(w) {
        const held = await oneRuns(w);
        await w.add({ options });
        return held;
      },
      racers: [
        { run: (w, held) => w.settle(held, SUCCEEDED), ...SETTLE, splits: [HAND_OVER_SNAPSHOT, HAND_OVER_DRAWN] },
        { run: (w) => w.enqueue({ options }), ...ENQUEUE },
      ],
      afterwards,
      holds,
    },
    [
      {
        clause: "no more are let in than places are given up",
        without: [{ statement: "settle_limited", from: "limit p.count for update", to: "limit p.count + 1 for update" }],
        because: /exceeded/,
      },
    ],
    EVERYWHERE,
  );

  race(
    "a settlement at a gate with room left, and an enqueue",
    {
      async setup(w) {
        await w.add({ options: two });
        const held = await w.hold();
        await w.add();
        return held;
      },
      racers: [
        { run: (w, held) => w.settle(held, SUCCEEDED), ...SETTLE },
        { run: (w) => w.enqueue({ options: two }), ...ENQUEUE },
      ],
      async afterwards(w) {
        await w.store.limits.admit(100);
        return w.claimIds();
      },
    },
    [
      {
        clause: "nobody who found the gate open goes to the front (closed)",
        without: [{ statement: "settle_limited", from: "where g.closed and", to: "where" }],
        because: /no order/,
      },
    ],
    EVERYWHERE,
  );

  race(
    "settlements that would hand places over, and an enqueue of two under a stricter rule",
    {
      async setup(w) {
        for (let n = 0; n < 2; n++) await w.add({ options: two });
        return [await w.hold(), await w.hold()] as const;
      },
      racers: [
        {
          run: async (w, [first, second]) => [await w.settle(first, SUCCEEDED), await w.settle(second, SUCCEEDED)],
          stops: ["settle_limited"],
        },
        { run: (w) => w.enqueue({ options }, { options }), ...ENQUEUE },
      ],
      afterwards,
      holds,
    },
    [
      {
        clause: "what was knocked with is in the gate before anybody is let in (knock)",
        without: [{ statement: "settle_limited", from: "(k.rule::text <> g.rule::text or", to: "(" }],
        because: /exceeded/,
      },
    ],
    EVERYWHERE,
  );

  race(
    "two settlements that hand their places over",
    {
      async setup(w) {
        for (let n = 0; n < 2; n++) await w.add({ options: two });
        const held = [await w.hold(), await w.hold()] as const;
        for (let n = 0; n < 3; n++) await w.add({ options: two });
        return held;
      },
      racers: [
        { run: (w, [first]) => w.settle(first, SUCCEEDED), ...SETTLE, splits: [HAND_OVER_SNAPSHOT, HAND_OVER_DRAWN] },
        { run: (w, [, second]) => w.settle(second, SUCCEEDED), ...SETTLE, splits: [HAND_OVER_SNAPSHOT, HAND_OVER_DRAWN] },
      ],
      afterwards,
      async holds(w) {
        const states = (await everyJob(w.store)).map(({ state }) => state).sort();
        expect(states).toEqual(["parked", "ready", "ready", "succeeded", "succeeded"]);
        expect((await w.store.limits.get(GATE))?.holders).toHaveLength(2);
      },
    },
    // Whoever is let in twice is refused by the key of `ready`, and the second settlement goes the long way: no clause is needed.
    [],
    EVERYWHERE,
  );

  race(
    "a settlement that hands its place over, and the cancellation of the next",
    {
      async setup(w) {
        await w.add({ options });
        const held = await w.hold();
        const next = await w.add({ options });
        await w.add({ options });
        return { held, next };
      },
      racers: [
        {
          run: (w, { held }) => w.settle(held, SUCCEEDED),
          stops: ["settle_limited", "heads_of_lines"],
          splits: [HAND_OVER_SNAPSHOT, HAND_OVER_DRAWN],
        },
        { run: async (w, { next }) => (await w.store.jobs.cancel("everyone", next, "why not")).kind, stops: ["take"], splits: [TAKE_SNAPSHOT] },
      ],
      afterwards: async (w) => {
        w.clock.advance(1_000);
        await w.store.limits.admit(100);
      },
      holds,
    },
    [
      {
        clause: "only whoever was taken out of the line is let in (handed)",
        without: BELIEVING,
        because: /is in history and ready/,
      },
    ],
    EVERYWHERE,
  );

  race(
    "a settlement that frees a key, and the cancellation of the next",
    {
      async setup(w) {
        await w.add({ options });
        const held = await w.hold();
        const next = await w.add({ options: twoGates });
        await w.add({ options: twoGates });
        return { held, next };
      },
      racers: [
        { run: (w, { held }) => w.settle(held, SUCCEEDED), stops: ["settle_limited", "heads_of_lines"] },
        { run: async (w, { next }) => (await w.store.jobs.cancel("everyone", next, "why not")).kind, stops: ["take"], splits: [TAKE_SNAPSHOT] },
      ],
      afterwards: async (w) => {
        w.clock.advance(1_000);
        await w.store.limits.admit(100);
      },
      holds,
    },
    [
      {
        clause: "HEADS locks those it is about to let in",
        without: [{ statement: "heads_of_lines", from: "limit k.room for update skip locked", to: "limit k.room" }],
        because: /leaked|open gate|no order/,
      },
    ],
    EVERYWHERE,
  );

  race(
    "a reap that frees a key, and an enqueue of it",
    {
      async setup(w) {
        await oneRuns(w);
        w.clock.advance(LEASE);
      },
      racers: [
        { run: (w) => w.store.leases.reap(10), ...REAP },
        { run: (w) => w.enqueue({ options }), ...ENQUEUE },
      ],
      afterwards,
      holds,
    },
    [
      {
        clause: "a reap gives back what its jobs hold (VACATE)",
        without: [{ statement: "vacate", from: "($3::bool or kind <> 'serial')", to: "$3::bool" }],
        because: /no order|without a place|open gate/,
      },
    ],
  );

  for (const [which, others] of [
    ["is let in", 0],
    ["waits at the gate", 1],
  ] as const)
    race(
      `a retry by hand of a job whose time comes, and which ${which}`,
      {
        async setup(w) {
          for (let other = 0; other < others; other++) await w.add({ options });
          const id = await w.add({ options, delay: HOUR });
          w.clock.advance(HOUR);
          return id;
        },
        racers: [
          { run: async (w, id) => (await w.store.jobs.retry("everyone", id)).kind, stops: ["facts", "commit"], splits: [TAKE_SNAPSHOT] },
          { run: async (w) => void (await w.store.duties.promote(10)), stops: ["read_gates"] },
        ],
        afterwards,
        async holds(w, id) {
          await neitherExceededNorLeaked(w);
          expect((await w.get(id)).parkedFor, "nobody paused it").not.toBe("paused");
          const { holders = [], next } = (await w.store.limits.get(GATE)) ?? {};
          expect(holders, "waits for itself").not.toContain(next?.job);
        },
        notSerial: "a retry that comes too late is refused, whatever became of the job",
      },
      // Taken from a line, it only loses its place there.
      others > 0
        ? []
        : [
            {
              clause: "a verb takes a job only from where it was seen (TAKE)",
              without: [TAKE_ANYWHERE],
              because: /waits for itself/,
            },
          ],
    );

  race(
    "a prune of gates where nobody is, and two who come to one",
    {
      setup: async (w) => w.run(await w.add({ options })),
      racers: [
        {
          run: (w) => w.store.duties.prune(KEEP).then(() => undefined),
          stops: ["forget_gates"],
          splits: [splitBefore("idle_gates", "not exists (select from pawl.knock")],
        },
        { run: (w) => w.enqueue({ options }, { options }).then(() => undefined), stops: ["make_gates"] },
      ],
      async afterwards(w) {
        for (const held of await w.holdAll({ limit: 1 })) await w.settle(held, SUCCEEDED);
        await w.store.limits.admit(100);
      },
      async holds(w) {
        await neitherExceededNorLeaked(w);
        expect((await everyJob(w.store)).map(({ state }) => state).sort()).toEqual(["ready", "succeeded", "succeeded"]);
      },
    },
    [
      {
        clause: "FORGET_GATES judges them again, when they are locked",
        without: [{ statement: "forget_gates", from: "g.key = any($2::text[]) and", to: "g.key = any($2::text[]) or" }],
        because: /no order/,
      },
      {
        clause: "who finds that a gate has gone makes it again (GONE_GATES)",
        without: [{ statement: "gone_gates", from: "k.rule is not null", to: "false" }],
        because: /no order/,
      },
    ],
  );

  race(
    "a transaction that would replace the next of a key and is rolled back, and the settlement that frees the key",
    {
      async setup(w) {
        await w.add({ options });
        const held = await w.hold();
        const next = await w.add({ options, unique: ONLY });
        return { held, next };
      },
      racers: [
        {
          run: (w, { next }) =>
            w.store.leases
              .transaction(async (tx) => {
                await w.store.jobs.enqueue([w.newJob({ options, unique: ONLY })], tx);
                await w.store.jobs.get("everyone", next);
                throw new Error("on second thoughts");
              })
              .catch((error: Error) => error.message),
          stops: ["facts"],
        },
        { run: (w, { held }) => w.settle(held, SUCCEEDED), stops: ["settle_limited", "heads_of_lines"] },
      ],
      async afterwards(w) {
        w.clock.advance(1_000);
        await w.store.limits.admit(100);
      },
      holds: async (w, { next }) => expect(await w.state(next), "waits before an open gate").toBe("ready"),
      notSerial: "the oracle has no transactions",
    },
    [
      {
        clause: "HEADS tells of those that it passes by",
        without: [{ statement: "heads_of_lines", from: "where h.gate = k.key) < k.room", to: "where h.gate = k.key) < 0" }],
        because: /waits before an open gate/,
      },
    ],
  );

  race(
    "two who look at the same gates at once",
    {
      async setup(w) {
        const [a, b] = [0, 1].map((n) => ({ limits: [{ limit: `limit ${n}`, key: "k", rule: RULE }] }));
        const both: JobOptions = { limits: [...(a?.limits ?? []), ...(b?.limits ?? [])] };
        const held = [];
        for (const one of [a, b]) {
          await w.add({ options: one as JobOptions });
          held.push(await w.hold());
        }
        await w.add({ options: both });
        await w.add({ options: both });
        return held as unknown as readonly [Held, Held];
      },
      racers: [
        { run: (w, [first]) => w.settle(first, SUCCEEDED), stops: ["lock_gates", "heads_of_lines"] },
        { run: (w, [, second]) => w.settle(second, SUCCEEDED), stops: ["lock_gates", "heads_of_lines"] },
      ],
      afterwards,
      holds: async (w) => {
        const states = (await everyJob(w.store)).map(({ state }) => state);
        expect(states.filter((state) => state === "ready")).toHaveLength(1);
      },
      notSerial: "which of two is let in that wait at different gates depends on who looks first",
    },
    // They are locked in sorted order: two that wait in a circle would be found in any of these orders.
    [],
  );

  race(
    "a serial key: the settlement of its job, and the pause of the next",
    {
      async setup(w) {
        await w.add({ options: serial });
        const held = await w.hold();
        const next = await w.add({ options: serial });
        const last = await w.add({ options: serial });
        return { held, next, last };
      },
      racers: [
        { run: (w, { held }) => w.settle(held, SUCCEEDED), stops: ["settle_limited", "heads_of_lines"] },
        { run: async (w, { next }) => (await w.store.jobs.pause("everyone", next)).kind, stops: ["take"], splits: [TAKE_SNAPSHOT] },
      ],
      afterwards: async (w) => {
        w.clock.advance(1_000);
        await w.store.limits.admit(100);
      },
      holds,
    },
    // What this race guards is an order, not a state: that nobody passes the first while it is in somebody's hands matters
    // where they let go of it again, and that is a rollback.
    [],
  );
});
