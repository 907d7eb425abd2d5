import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { type HeldJob, HOUR, KILLED, MINUTE, SUCCEEDED, type World } from "../../packages/pawl/conformance/world.js";
import { ALL_SERVERS, races } from "../support/races/race.js";
import type { StatementSplit, VerbPieces } from "../support/races/racing-session.js";
import { CLAIM_SNAPSHOT, PROMOTE_SNAPSHOT, SETTLE_SNAPSHOT, TAKE_SNAPSHOT } from "./statement-splits.js";

const FOLD_SNAPSHOT = { at: "fold-snapshot" };
/** Between the counters of one fold, as they are locked: before that of this task. */
const beforeCounter = (task: string): StatementSplit => ({
  at: "between-counters",
  to: (barrier, starts) => `case when task = '${task}' and ${barrier} then ${starts} else ${starts} end`,
});
const CONTROL: VerbPieces = { stops: ["facts", "commit"] };
const DAY = 24 * HOUR;

async function dead(w: World) {
  const id = await w.add();
  await w.run(id, KILLED);
  return id;
}

async function succeeded(w: World) {
  const id = await w.add();
  await w.run(id);
  return id;
}

const redrive = (w: World, id: Awaited<ReturnType<typeof dead>>) => w.store.jobs.redrive("everyone", id, {});
const drop = (w: World, id: Awaited<ReturnType<typeof dead>>) => w.store.jobs.delete("everyone", id);

const RAISE_BELIEVING = {
  guard: "dead-was-deleted",
  becomes: "select id from pawl.dead where id = $1::uuid",
};

races((race) => {
  race(
    "two redrives",
    {
      setup: dead,
      racers: [
        { run: redrive, ...CONTROL },
        { run: redrive, ...CONTROL },
      ],
    },
    [{ clause: "RAISE answers with what it deleted; else redrive looks again", without: [RAISE_BELIEVING], because: /duplicate key|is in/ }],
  );

  race(
    "a drop and a redrive",
    {
      setup: dead,
      racers: [
        { run: drop, ...CONTROL },
        { run: redrive, ...CONTROL },
      ],
    },
    [{ clause: "RAISE answers with what it deleted; else each looks again", without: [RAISE_BELIEVING], because: /has no row|is in/ }],
  );

  race(
    "two drops of a job that succeeded",
    {
      setup: succeeded,
      racers: [
        { run: drop, ...CONTROL },
        { run: drop, ...CONTROL },
      ],
    },
    [
      {
        clause: "dropJobs answers with what it deleted",
        without: [
          {
            guard: "facts-were-deleted",
            becomes: (deletion) => `with gone as (${deletion}) select unnest($1::uuid[]) as id`,
          },
        ],
        because: /counts say -1 succeeded/,
      },
    ],
  );

  race(
    "a drop and a settlement of the same job whose answer was lost",
    {
      async setup(w) {
        await w.enqueue({}, {});
        const [first] = (await w.holdAll()) as [HeldJob];
        await w.settle(first, SUCCEEDED);
        return first;
      },
      racers: [
        { run: (w, { job }) => drop(w, job.id), stops: ["facts", "take_out_of_history", "commit"] },
        { run: (w, first) => w.settle(first, SUCCEEDED), splits: [SETTLE_SNAPSHOT] },
      ],
    },
    [
      {
        clause: "a place that is settled is not settled again, whatever became of its job",
        without: [{ guard: "settled-once" }],
        because: /open jobs and has|counts say|no row|no order/,
      },
    ],
  );

  race(
    "a prune of dead jobs and a redrive",
    {
      async setup(w) {
        const id = await dead(w);
        w.clock.advance(10 * DAY);
        return id;
      },
      racers: [
        { run: redrive, ...CONTROL },
        {
          run: async (w) => void (await dutiesOf(w.store).prune({ finished: 300 * DAY, dead: 9 * DAY, limit: 10 })),
          stops: ["old_dead", "lock_dead"],
        },
      ],
    },
    [
      {
        clause: "what is dropped is locked before it is judged (LOCK_DEAD)",
        without: [{ guard: "dead-locked" }],
        because: /has no row/,
      },
    ],
  );

  race(
    "two promotions",
    {
      async setup(w) {
        for (let i = 0; i < 4; i++) await w.add({ delay: HOUR });
        w.clock.advance(HOUR);
      },
      racers: [
        { run: async (w) => (await dutiesOf(w.store).promote(2)).count, splits: [PROMOTE_SNAPSHOT] },
        { run: async (w) => (await dutiesOf(w.store).promote(2)).count, splits: [PROMOTE_SNAPSHOT] },
      ],
    },
    [
      {
        clause: "due … for update skip locked",
        without: [{ guard: "due-job-locked" }],
        because: /no order/,
      },
    ],
  );

  race(
    "two folds",
    {
      async setup(w) {
        for (let i = 0; i < 3; i++) await w.add();
        await w.hold();
      },
      racers: [
        { run: async (w) => void (await dutiesOf(w.store).fold(10)), splits: [FOLD_SNAPSHOT] },
        { run: async (w) => void (await dutiesOf(w.store).fold(10)), splits: [FOLD_SNAPSHOT] },
      ],
    },
    [
      {
        clause: "what is folded is what was deleted, of what nobody else has locked",
        without: [{ guard: "deltas-locked" }, { guard: "counted-were-deleted", becomes: "pawl.counter_delta where id in (select id from batch)" }],
        because: /counts say/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "two folds of two tasks each, in turn",
    {
      async setup(w) {
        for (const task of ["x", "y", "y", "x"]) await w.add({ task });
      },
      racers: [
        { run: async (w) => void (await dutiesOf(w.store).fold(2)), splits: [beforeCounter("y")] },
        { run: async (w) => void (await dutiesOf(w.store).fold(2)), splits: [beforeCounter("x")] },
      ],
    },
    [
      {
        clause: "FOLD writes the counters in their order, not in that of the deltas",
        without: [
          {
            guard: "counters-in-order",
            becomes: "order by (select min(d.id) from gone d where d.queue = g.queue and d.task = g.task)",
          },
        ],
        because: /circle/,
      },
    ],
  );

  race(
    "an expiry and the promotion of its job",
    {
      async setup(w) {
        const id = await w.add({ delay: HOUR, options: { startWithin: MINUTE } });
        w.clock.advance(HOUR + MINUTE);
        return id;
      },
      racers: [
        { run: async (w) => void (await dutiesOf(w.store).expire(10)), stops: ["facts", "commit"], splits: [TAKE_SNAPSHOT] },
        { run: async (w) => void (await dutiesOf(w.store).promote(10)), splits: [PROMOTE_SNAPSHOT] },
      ],
      // The next round gets what this one missed.
      afterwards: async (w) => void (await dutiesOf(w.store).expire(10)),
    },
    [
      {
        clause: "expire looks again at what it could not take",
        without: [{ guard: "running-is-looked-at-again", becomes: (jobs) => `${jobs} where false` }],
        because: /no order/,
      },
    ],
  );

  race(
    "a deadline that has passed and the claim of its job",
    {
      async setup(w) {
        const id = await w.add({ options: { finishWithin: MINUTE } });
        w.clock.advance(MINUTE);
        return id;
      },
      racers: [
        { run: async (w) => void (await dutiesOf(w.store).expire(10)), stops: ["facts", "commit"], splits: [TAKE_SNAPSHOT] },
        {
          run: async (w) => {
            const [held] = await w.holdAll();
            return held === undefined ? "none" : w.settle(held, { kind: "released" });
          },
          stops: ["claim"],
          splits: [CLAIM_SNAPSHOT],
        },
      ],
      afterwards: async (w) => void (await dutiesOf(w.store).expire(10)),
    },
    [
      {
        clause: "expire looks again at what it could not take",
        without: [{ guard: "running-is-looked-at-again", becomes: (jobs) => `${jobs} where false` }],
        because: /no order/,
      },
    ],
  );
});
