import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { inTransaction } from "../../packages/pawl/conformance/transactions.js";
import { type HeldJob, KILLED, lane, SUCCEEDED, type World } from "../../packages/pawl/conformance/world.js";
import type { JobId } from "../../packages/pawl/src/core/jobs/id.js";
import { ALL_SERVERS, races } from "../support/races/race.js";
import type { VerbPieces } from "../support/races/racing-session.js";
import { SETTLE_LOCKED, SETTLE_SNAPSHOT } from "./statement-splits.js";

const PARENTS = [lane({ task: "parent" })];
const RELEASE: VerbPieces = { stops: ["dependents", "lock_children", "still_waiting", "commit"] };
/** The enqueue of a child: what it sees of the parents, its commit, and its own look at the ties after that. */
const ENQUEUE: VerbPieces = { stops: ["tie", "commit", "touch_leases"] };

async function heldParent(w: World): Promise<HeldJob> {
  await w.add({ task: "parent" });
  return w.hold({ lanes: PARENTS });
}

/** A child of two parents, each under a lease of its own. */
async function family(w: World): Promise<readonly [HeldJob, HeldJob]> {
  const parents = [await w.add({ task: "parent" }), await w.add({ task: "parent" })];
  await w.add({ after: parents });
  return [await w.hold({ lanes: PARENTS }), await w.hold({ lanes: PARENTS })];
}

/** Enqueued in a transaction of the caller's own, so that nobody has looked at the tie yet. */
async function unverified(w: World, parent: JobId): Promise<void> {
  const job = w.newJob({ after: [parent] });
  if (w.store.engine.engine === "memory") await w.store.jobs.enqueue([job]);
  else await inTransaction(w.store, async (tx) => void (await w.store.jobs.enqueue([job], tx)));
}

/** A child and the success of its parent that did not see each other. */
async function passingBy(w: World, parent: HeldJob): Promise<void> {
  const job = w.newJob({ after: [parent.job.id] });
  if (w.store.engine.engine === "memory") {
    await w.store.jobs.enqueue([job]);
    await w.settle(parent, SUCCEEDED);
    return;
  }
  await inTransaction(w.store, async (tx) => {
    await w.store.jobs.enqueue([job], tx);
    await w.settle(parent, SUCCEEDED);
  });
}

const kinds = async (w: World, parent: JobId) => (await w.enqueue({ after: [parent] })).map(({ kind }) => kind);

races((race) => {
  race(
    "two parents that succeed at once",
    {
      setup: family,
      racers: [
        { run: (w, [first]) => w.settle(first, SUCCEEDED), ...RELEASE },
        { run: (w, [, second]) => w.settle(second, SUCCEEDED), ...RELEASE },
      ],
    },
    [
      {
        clause: "LOCK_CHILDREN … for update, before STILL_WAITING counts",
        without: [{ guard: "child-locked" }],
        because: /is blocked by nothing/,
      },
    ],
    ALL_SERVERS,
  );

  // Guarded by the same clause, and by take, which gives the child to one of them only.
  race(
    "a parent that succeeds and one that dies",
    {
      setup: family,
      racers: [
        { run: (w, [first]) => w.settle(first, SUCCEEDED), ...RELEASE },
        { run: (w, [, second]) => w.settle(second, KILLED), stops: ["dependents", "take_waiting", "commit"] },
      ],
    },
    [],
  );

  race(
    "the enqueue of a child and the success of its running parent",
    {
      setup: heldParent,
      racers: [
        { run: (w, one) => kinds(w, one.job.id), ...ENQUEUE },
        { run: (w, one) => w.settle(one, SUCCEEDED), splits: [SETTLE_SNAPSHOT, SETTLE_LOCKED] },
      ],
    },
    [
      {
        clause: "the guard of settle looks for dependents",
        without: [{ guard: "dependents-need-steps", becomes: "when false" }],
        // A child that came before the claim: nobody watches the lease for its sake.
        instead: {
          async setup(w) {
            const parent = await w.add();
            await kinds(w, parent);
            return w.hold();
          },
        },
        because: /waits for .*, which is succeeded|in a row/,
      },
      {
        clause: "unblock locks the holders of the parents (TOUCH_LEASES)",
        without: [{ guard: "lease-is-touched", becomes: (clause) => clause.replace("where", "where false and") }],
        because: /waits for .*, which is succeeded/,
      },
      {
        clause: "settle is made again where somebody wrote to the lease after its snapshot (changed_by)",
        without: [{ guard: "changes-are-visible" }],
        because: /waits for .*, which is succeeded/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "the enqueue of a child and the success of its parent that goes the long way",
    {
      async setup(w) {
        const one = await heldParent(w);
        await w.store.jobs.cancel("everyone", one.job.id, "too late");
        return one;
      },
      racers: [
        { run: (w, one) => kinds(w, one.job.id), ...ENQUEUE },
        { run: (w, one) => w.settle(one, SUCCEEDED), stops: ["settle", "append_attempts", "dependents"] },
      ],
    },
    [
      {
        clause: "unblock locks the holders of the parents (TOUCH_LEASES)",
        without: [{ guard: "lease-is-touched", becomes: (clause) => clause.replace("where", "where false and") }],
        because: /waits for .*, which is succeeded/,
      },
    ],
  );

  race(
    "the enqueue of a child and the cancel of its waiting parent",
    {
      setup: (w) => w.add({ task: "parent" }),
      racers: [
        { run: kinds, ...ENQUEUE },
        { run: (w, parent) => w.store.jobs.cancel("everyone", parent, "no need"), stops: ["take_waiting", "dependents"] },
      ],
    },
    [
      {
        clause: "unblock locks the rows in which the parents wait (LOCK_WAITING)",
        without: [{ guard: "waiting-locked" }],
        because: /waits for .*, which is cancelled/,
      },
    ],
  );

  race(
    "a look at new ties and the success of the parent",
    {
      async setup(w) {
        const one = await heldParent(w);
        await unverified(w, one.job.id);
        return one;
      },
      racers: [
        { run: async (w) => void (await dutiesOf(w.store).unblock(10)), stops: ["unverified", "touch_leases", "commit"] },
        { run: (w, one) => w.settle(one, SUCCEEDED), stops: ["settle", "lock_leases", "dependents", "lock_children", "commit"] },
      ],
    },
    [
      {
        clause: "unblock locks no tie before the leases, as a settlement does not",
        without: [{ guard: "unverified-are-shared", becomes: (limit) => `${limit} for update skip locked` }],
        because: /circle/,
      },
    ],
  );

  race(
    "two looks at new ties whose parent has succeeded",
    {
      async setup(w) {
        const one = await heldParent(w);
        await passingBy(w, one);
      },
      racers: [
        { run: async (w) => void (await dutiesOf(w.store).unblock(10)), stops: ["unverified", "dependents", "commit"] },
        { run: async (w) => void (await dutiesOf(w.store).unblock(10)), stops: ["unverified", "dependents", "commit"] },
      ],
    },
    [
      {
        clause: "release goes on with those children that are still blocked (LOCK_CHILDREN)",
        without: [
          {
            guard: "child-is-blocked",
            becomes: "select unnest($1::uuid[]) as id",
          },
          { guard: "child-locked" },
        ],
        because: /counts say/,
      },
    ],
  );
});
