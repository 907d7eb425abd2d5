import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { FAILED, type HeldJob, HOUR, LEASE, MINUTE, SUCCEEDED, type World } from "../../packages/pawl/conformance/world.js";
import { ALL_SERVERS, races } from "../support/races/race.js";
import {
  ASK,
  CANCEL,
  CLAIM_SNAPSHOT,
  PROMOTE_SNAPSHOT,
  SETTLE_LOCKED,
  SETTLE_SNAPSHOT,
  TAKE_ANYWHERE,
  takeWithoutCheck,
} from "./statement-splits.js";

async function held(w: World): Promise<HeldJob> {
  await w.add();
  return w.hold();
}

async function due(w: World) {
  const id = await w.add({ delay: HOUR });
  w.clock.advance(HOUR);
  return id;
}

const cancel = (w: World, { job }: HeldJob) => w.store.jobs.cancel("everyone", job.id, "no need");

const SETTLE = { splits: [SETTLE_SNAPSHOT, SETTLE_LOCKED] };
const INTENT_GUARD = {
  guard: "intents-need-steps",
  becomes: "when false",
};

races((race) => {
  race(
    "a cancel and the success of its job",
    {
      setup: held,
      racers: [
        { run: cancel, ...ASK },
        { run: (w, one) => w.settle(one, SUCCEEDED), ...SETTLE },
      ],
    },
    [
      {
        clause: "carryOut forgets what was asked of a job that ended meanwhile",
        instead: { afterwards: async () => undefined },
        because: /was asked to cancel and nobody will/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "a cancel and a failure that is to be retried",
    {
      setup: held,
      racers: [
        { run: cancel, ...ASK },
        { run: (w, one) => w.settle(one, FAILED), ...SETTLE },
      ],
    },
    [
      { clause: "the guard of settle looks for intents", without: [INTENT_GUARD], because: /in a row/ },
      {
        clause: "carryOut cancels what a settlement passed by",
        instead: { afterwards: async () => undefined },
        because: /was asked to cancel and nobody will/,
      },
    ],
  );

  race(
    "a pause and a failure that is to be retried",
    {
      setup: held,
      racers: [
        { run: (w, { job }) => w.store.jobs.pause("everyone", job.id), ...ASK },
        { run: (w, one) => w.settle(one, FAILED), ...SETTLE },
      ],
    },
    [
      { clause: "the guard of settle looks for intents", without: [INTENT_GUARD], because: /in a row/ },
      {
        clause: "carryOut parks what a settlement passed by",
        instead: { afterwards: async () => undefined },
        because: /was asked to pause and nobody will/,
      },
    ],
  );

  race(
    "a cancel and a reap",
    {
      async setup(w) {
        const one = await held(w);
        w.clock.advance(LEASE);
        return one;
      },
      racers: [
        { run: cancel, ...ASK },
        { run: (w) => dutiesOf(w.store).reap(10), stops: ["unsettled", "intents_of"] },
      ],
    },
    [
      {
        clause: "a reap reads what was asked of its jobs",
        without: [{ guard: "intents-are-read", becomes: (clause) => clause.replace("where", "where false and") }],
        because: /in a row/,
      },
    ],
  );

  race(
    "a cancel and a claim",
    {
      setup: (w) => w.add(),
      racers: [
        { run: (w, id) => w.store.jobs.cancel("everyone", id, "no need"), ...CANCEL },
        { run: (w) => w.claimIds(), splits: [CLAIM_SNAPSHOT] },
      ],
    },
    [
      {
        clause: "take answers with what it deleted, not with what it saw; else cancel looks again",
        without: [takeWithoutCheck("ready")],
        because: /is in history and lease/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "a cancel and a promotion",
    {
      setup: due,
      racers: [
        { run: (w, id) => w.store.jobs.cancel("everyone", id, "no need"), ...CANCEL },
        { run: async (w) => (await dutiesOf(w.store).promote(10)).count, splits: [PROMOTE_SNAPSHOT] },
      ],
    },
    [
      {
        clause: "take answers with what it deleted, not with what it saw; else cancel looks again",
        without: [takeWithoutCheck("scheduled")],
        because: /is in history and ready/,
      },
    ],
  );

  race(
    "a pause and a retry by hand",
    {
      setup: (w) => w.add({ delay: HOUR }),
      racers: [
        { run: (w, id) => w.store.jobs.pause("everyone", id), stops: ["facts", "commit"] },
        { run: (w, id) => w.store.jobs.promote("everyone", id), stops: ["facts", "commit"] },
      ],
    },
    [
      {
        clause: "a verb takes a job only from where it was seen (TAKE)",
        without: [TAKE_ANYWHERE],
        because: /no order/,
      },
    ],
  );

  race(
    "two resumes",
    {
      async setup(w) {
        const id = await w.add();
        await w.store.jobs.pause("everyone", id);
        return id;
      },
      racers: [
        { run: (w, id) => w.store.jobs.resume("everyone", id), stops: ["facts", "commit"] },
        { run: (w, id) => w.store.jobs.resume("everyone", id), stops: ["facts", "commit"] },
      ],
    },
    [
      {
        clause: "a verb takes a job only from where it was seen (TAKE)",
        without: [TAKE_ANYWHERE],
        because: /no order/,
      },
    ],
  );

  // Guarded by LOCK_CHILDREN and take: see dependencies.test.ts for what happens without.
  race(
    "a cancel of a job that is being unblocked, and the success of what it waits for",
    {
      async setup(w) {
        const parent = await w.add({ task: "parent" });
        const child = await w.add({ after: [parent] });
        return { child, one: await w.hold({ lanes: [{ queue: "default", priority: 5, tenant: "acme", task: "parent" }] }) };
      },
      racers: [
        { run: (w, { child }) => w.store.jobs.cancel("everyone", child, "no need"), stops: ["facts", "take_waiting", "commit"] },
        { run: (w, { one }) => w.settle(one, SUCCEEDED), stops: ["dependents", "lock_children", "commit"] },
      ],
    },
    [],
  );

  // Guarded by carryOut, as above: the pause may come after PAUSED has looked for it.
  race(
    "a pause of a job that is being unblocked, and the success of what it waits for",
    {
      async setup(w) {
        const parent = await w.add({ task: "parent" });
        const child = await w.add({ after: [parent], delay: MINUTE });
        return { child, one: await w.hold({ lanes: [{ queue: "default", priority: 5, tenant: "acme", task: "parent" }] }) };
      },
      racers: [
        { run: (w, { child }) => w.store.jobs.pause("everyone", child), ...ASK },
        { run: (w, { one }) => w.settle(one, SUCCEEDED), stops: ["lock_children", "pause_intents"] },
      ],
    },
    [],
  );
});
