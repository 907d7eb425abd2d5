import { expect } from "vitest";
import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { everyJob } from "../../packages/pawl/conformance/invariants.js";
import { inTransaction } from "../../packages/pawl/conformance/transactions.js";
import { DAY, type HeldJob, HOUR, LEASE, SUCCEEDED, type World } from "../../packages/pawl/conformance/world.js";
import type { JobOptions } from "../../packages/pawl/src/core/jobs/job.js";
import type { UniqueRule } from "../../packages/pawl/src/core/jobs/unique-key.js";
import type { LimitRule } from "../../packages/pawl/src/core/limits/limit-rule.js";
import { ALL_SERVERS, races } from "../support/races/race.js";
import type { VerbPieces } from "../support/races/racing-session.js";
import { PASS_ON_DRAWN, PASS_ON_SNAPSHOT, REAP, TAKE_ANYWHERE, TAKE_SNAPSHOT } from "./statement-splits.js";

const RULE: LimitRule = { concurrency: 1 };
const LIMIT_KEY = { tenant: "acme", limit: "per key", key: "k" };
const options: JobOptions = { limits: [{ limit: LIMIT_KEY.limit, key: LIMIT_KEY.key, rule: RULE }] };
const two: JobOptions = { limits: [{ limit: LIMIT_KEY.limit, key: LIMIT_KEY.key, rule: { concurrency: 2 } }] };
const serial: JobOptions = { limits: [{ limit: LIMIT_KEY.limit, key: LIMIT_KEY.key, rule: { serial: true } }] };

const ONLY: UniqueRule = { key: "only", hold: "unstarted", onConflict: "replace" };
const KEEP = { finished: 30 * DAY, dead: 90 * DAY, limit: 100 };

/** When it is stored, and when it was read how the limit key stands. */
const ENQUEUE: VerbPieces = { stops: ["put_waiting", "read_limit_keys"] };
const SETTLE: VerbPieces = { stops: ["settle_limited", "read_limit_keys"] };

/** It has another limit key to pass as well: no slot is passed on to such a job. */
const twoLimitKeys: JobOptions = { limits: [...(options.limits ?? []), { limit: "other", key: "k", rule: RULE }] };

/** One of the key runs, and another one waits. */
async function oneRuns(w: World): Promise<HeldJob> {
  await w.add({ options });
  const held = await w.hold();
  await w.add({ options });
  return held;
}

/** No job holds a slot after it has left, and no more have one than may; and while there is room, nobody waits. */
async function neitherExceededNorLeaked(w: World): Promise<void> {
  const jobs = new Map((await everyJob(w.store)).map((job) => [job.id, job.state]));
  const { holders = [], next } = (await w.store.limits.get(LIMIT_KEY)) ?? {};
  const over = holders.filter((job) => ["succeeded", "dead", "cancelled"].includes(jobs.get(job) ?? "deleted"));
  expect(over, "leaked").toEqual([]);
  expect([...jobs.values()].filter((state) => state === "ready" || state === "running").length, "exceeded").toBeLessThanOrEqual(1);
  if (holders.length === 0) expect(next, "waits before an open limit key").toBeUndefined();
  const slotless = [...jobs].filter(([job, state]) => (state === "ready" || state === "running") && !holders.includes(job));
  expect(slotless, "let in without a slot").toEqual([]);
}
/** A limit check that nobody answered is for the duty. */
const afterwards = (w: World) =>
  dutiesOf(w.store)
    .admit(100)
    .then(() => undefined);
const holds = neitherExceededNorLeaked;

const LOCKED = {
  clause: "LOCK_LIMIT_KEYS locks the limit key before anybody counts who is inside",
  // Two that delete the same limit checks wait for each other as well.
  without: [
    { guard: "limit-key-locked" },
    {
      guard: "limit-checks-are-waited-for",
      becomes: "delete from pawl.limit_check where id in (select id from pawl.limit_check where key = any($2::text[]) for update skip locked)",
    },
  ],
  because: /exceeded|no order/,
};

/** As if a settlement believed what it saw of a queue, whoever had left it meanwhile. */
const BELIEVING = [
  { guard: "next-in-queue-locked" },
  {
    guard: "passed-on-were-deleted",
    becomes: "(select p.*, n.key from next n join pawl.parked p on p.id = n.id) n",
  },
  { guard: "slots-of-passed-on", becomes: "select 'key', key, id from next on conflict do nothing" },
];

races((race) => {
  race(
    "two enqueues of one key that has room for one",
    {
      // The limit key is there: making it would make one wait for the other.
      setup: async (w) => w.run(await w.add({ options })),
      racers: [
        { run: (w) => w.enqueue({ options }), ...ENQUEUE },
        { run: (w) => w.enqueue({ options }), ...ENQUEUE },
      ],
      afterwards,
      holds,
      notSerial: "which of them is admitted depends on which came first to the limit key, not on which was stored first",
    },
    [LOCKED],
    ALL_SERVERS,
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
        clause: "a settlement adds a limit check for what it frees (and whoever adds one, looks)",
        without: [{ guard: "freed-slots-are-passed-on", becomes: "where false" }],
        because: /waits before an open limit key|no order/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "a settlement that passes its slot on, and an enqueue",
    {
      async setup(w) {
        const held = await oneRuns(w);
        await w.add({ options });
        return held;
      },
      racers: [
        { run: (w, held) => w.settle(held, SUCCEEDED), ...SETTLE, splits: [PASS_ON_SNAPSHOT, PASS_ON_DRAWN] },
        { run: (w) => w.enqueue({ options }), ...ENQUEUE },
      ],
      afterwards,
      holds,
    },
    [
      {
        clause: "no more are admitted than slots are freed",
        without: [{ guard: "as-many-as-freed", becomes: "limit p.count + 1" }],
        because: /exceeded/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "a settlement at a limit key with room left, and an enqueue",
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
        await dutiesOf(w.store).admit(100);
        return w.claimIds();
      },
    },
    [
      {
        clause: "no job that found the limit key open goes to the admitted section (closed)",
        without: [{ guard: "limit-key-was-closed" }],
        because: /no order/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "settlements that would pass slots on, and an enqueue of two under a stricter rule",
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
        clause: "the rule of a limit check is in the limit key before anybody is let in",
        without: [{ guard: "limit-check-has-same-rule" }],
        because: /exceeded/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "two settlements that pass their slots on",
    {
      async setup(w) {
        for (let n = 0; n < 2; n++) await w.add({ options: two });
        const held = [await w.hold(), await w.hold()] as const;
        for (let n = 0; n < 3; n++) await w.add({ options: two });
        return held;
      },
      racers: [
        { run: (w, [first]) => w.settle(first, SUCCEEDED), ...SETTLE, splits: [PASS_ON_SNAPSHOT, PASS_ON_DRAWN] },
        { run: (w, [, second]) => w.settle(second, SUCCEEDED), ...SETTLE, splits: [PASS_ON_SNAPSHOT, PASS_ON_DRAWN] },
      ],
      afterwards,
      async holds(w) {
        const states = (await everyJob(w.store)).map(({ state }) => state).sort();
        expect(states).toEqual(["parked", "ready", "ready", "succeeded", "succeeded"]);
        expect((await w.store.limits.get(LIMIT_KEY))?.holders).toHaveLength(2);
      },
    },
    // Whoever is let in twice is refused by the key of `ready`, and the second settlement goes the long way: no clause is needed.
    [],
    ALL_SERVERS,
  );

  race(
    "a settlement that passes its slot on, and the cancellation of the next job",
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
          stops: ["settle_limited", "heads_of_limit_queues"],
          splits: [PASS_ON_SNAPSHOT, PASS_ON_DRAWN],
        },
        {
          run: async (w, { next }) => (await w.store.jobs.cancel("everyone", next, "why not")).kind,
          stops: ["take_waiting"],
          splits: [TAKE_SNAPSHOT],
        },
      ],
      afterwards: async (w) => {
        w.clock.advance(1_000);
        await dutiesOf(w.store).admit(100);
      },
      holds,
    },
    [
      {
        clause: "only whoever was taken out of the queue is let in (passed on)",
        without: BELIEVING,
        because: /is in history and ready/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "a settlement that frees a key, and the cancellation of the next",
    {
      async setup(w) {
        await w.add({ options });
        const held = await w.hold();
        const next = await w.add({ options: twoLimitKeys });
        await w.add({ options: twoLimitKeys });
        return { held, next };
      },
      racers: [
        { run: (w, { held }) => w.settle(held, SUCCEEDED), stops: ["settle_limited", "heads_of_limit_queues"] },
        {
          run: async (w, { next }) => (await w.store.jobs.cancel("everyone", next, "why not")).kind,
          stops: ["take_waiting"],
          splits: [TAKE_SNAPSHOT],
        },
      ],
      afterwards: async (w) => {
        w.clock.advance(1_000);
        await dutiesOf(w.store).admit(100);
      },
      holds,
    },
    [
      {
        clause: "HEADS locks those it is about to let in",
        without: [{ guard: "queue-head-locked" }],
        because: /leaked|open limit key|no order/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "a reap that frees a key, and an enqueue of it",
    {
      async setup(w) {
        await oneRuns(w);
        w.clock.advance(LEASE);
      },
      racers: [
        { run: (w) => dutiesOf(w.store).reap(10), ...REAP },
        { run: (w) => w.enqueue({ options }), ...ENQUEUE },
      ],
      afterwards,
      holds,
    },
    [
      {
        clause: "a reap gives back what its jobs hold (VACATE)",
        without: [{ guard: "serial-slot-is-kept", becomes: "and $3::bool" }],
        because: /no order|without a slot|open limit key/,
      },
    ],
  );

  for (const [which, others] of [
    ["is let in", 0],
    ["waits at the limit key", 1],
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
          { run: async (w, id) => (await w.store.jobs.promote("everyone", id)).kind, stops: ["facts", "commit"], splits: [TAKE_SNAPSHOT] },
          { run: async (w) => void (await dutiesOf(w.store).promote(10)), stops: ["read_limit_keys"] },
        ],
        afterwards,
        async holds(w, id) {
          await neitherExceededNorLeaked(w);
          expect((await w.get(id)).parkedFor, "nobody paused it").not.toBe("paused");
          const { holders = [], next } = (await w.store.limits.get(LIMIT_KEY)) ?? {};
          expect(holders, "waits for itself").not.toContain(next?.job);
        },
        notSerial: "a retry that comes too late is refused, whatever became of the job",
      },
      // Taken from a queue, it only loses its position there.
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
    "a prune of limit keys where nobody is, and two who come to one",
    {
      setup: async (w) => w.run(await w.add({ options })),
      racers: [
        {
          run: (w) =>
            dutiesOf(w.store)
              .prune(KEEP)
              .then(() => undefined),
          stops: ["forget_limit_keys"],
          splits: [{ at: "idle-limit-keys-snapshot" }],
        },
        { run: (w) => w.enqueue({ options }, { options }).then(() => undefined), stops: ["make_limit_keys"] },
      ],
      async afterwards(w) {
        for (const held of await w.holdAll({ limit: 1 })) await w.settle(held, SUCCEEDED);
        await dutiesOf(w.store).admit(100);
      },
      async holds(w) {
        await neitherExceededNorLeaked(w);
        expect((await everyJob(w.store)).map(({ state }) => state).sort()).toEqual(["ready", "succeeded", "succeeded"]);
      },
    },
    [
      {
        clause: "FORGET_LIMIT_KEYS judges them again, when they are locked",
        without: [{ guard: "idle-is-judged-again", becomes: "or" }],
        because: /no order/,
      },
      {
        clause: "an enqueue that finds a limit key gone makes it again (GONE_LIMIT_KEYS)",
        without: [{ guard: "limit-key-can-be-made", becomes: "and false" }],
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
            inTransaction(w.store, async (tx) => {
              await w.store.jobs.enqueue([w.newJob({ options, unique: ONLY })], tx);
              await w.store.jobs.get("everyone", next);
              throw new Error("on second thoughts");
            }).catch((error: Error) => error.message),
          stops: ["facts"],
        },
        { run: (w, { held }) => w.settle(held, SUCCEEDED), stops: ["settle_limited", "heads_of_limit_queues"] },
      ],
      async afterwards(w) {
        w.clock.advance(1_000);
        await dutiesOf(w.store).admit(100);
      },
      holds: async (w, { next }) => expect(await w.state(next), "waits before an open limit key").toBe("ready"),
      notSerial: "the oracle has no transactions",
    },
    [
      {
        clause: "HEADS tells of those that it passes by",
        without: [{ guard: "room-left-is-seen", becomes: "< 0" }],
        because: /waits before an open limit key/,
      },
    ],
  );

  race(
    "two who look at the same limit keys at once",
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
        return held as unknown as readonly [HeldJob, HeldJob];
      },
      racers: [
        { run: (w, [first]) => w.settle(first, SUCCEEDED), stops: ["lock_limit_keys", "heads_of_limit_queues"] },
        { run: (w, [, second]) => w.settle(second, SUCCEEDED), stops: ["lock_limit_keys", "heads_of_limit_queues"] },
      ],
      afterwards,
      holds: async (w) => {
        const states = (await everyJob(w.store)).map(({ state }) => state);
        expect(states.filter((state) => state === "ready")).toHaveLength(1);
      },
      notSerial: "which of two jobs is admitted that wait at different limit keys depends on which is looked at first",
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
        { run: (w, { held }) => w.settle(held, SUCCEEDED), stops: ["settle_limited", "heads_of_limit_queues"] },
        { run: async (w, { next }) => (await w.store.jobs.pause("everyone", next)).kind, stops: ["take_waiting"], splits: [TAKE_SNAPSHOT] },
      ],
      afterwards: async (w) => {
        w.clock.advance(1_000);
        await dutiesOf(w.store).admit(100);
      },
      holds,
    },
    // What this race guards is an order, not a state: that nobody passes the first while it is in somebody's hands matters
    // where they let go of it again, and that is a rollback.
    [],
  );
});
