import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { DAY, type Spec, type World } from "../../packages/pawl/conformance/world.js";
import { DEFAULTS } from "../../packages/pawl/src/core/values/defaults.js";
import type { BatchRequest } from "../../packages/pawl/src/store/port/enqueue/batches.js";
import { ALL_SERVERS, races } from "../support/races/race.js";
import type { VerbPieces } from "../support/races/racing-session.js";

const REQUEST: BatchRequest = { tenant: "acme", id: "r1", digest: "d1" };

/** Many of one lane, as a plan gives it to them: stored by one statement. */
const many = (w: World) => {
  const { lane } = w.newJob();
  return w.store.batches.enqueue(
    REQUEST,
    Array.from({ length: 3 }, () => ({ ...w.newJob(), lane })),
  );
};
const few = (w: World, ...specs: readonly Spec[]) =>
  w.store.batches.enqueue(
    REQUEST,
    specs.map((spec) => w.newJob(spec)),
  );

const STEPS: VerbPieces = { stops: ["begin_batch", "commit"] };

races((race) => {
  race(
    "two copies of a batch of one lane",
    {
      setup: async () => undefined,
      racers: [
        { run: many, ...STEPS },
        { run: many, ...STEPS },
      ],
    },
    [
      {
        clause: "an idempotency key that is known is not taken again (where b.until <= now)",
        without: [{ guard: "batch-key-is-over" }],
        because: /no order/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "two copies of a batch of several kinds",
    {
      setup: async () => undefined,
      racers: [
        { run: (w) => few(w, {}, { unique: { key: "k", hold: "unfinished", onConflict: "existing" } }), ...STEPS },
        { run: (w) => few(w, {}, { unique: { key: "k", hold: "unfinished", onConflict: "existing" } }), ...STEPS },
      ],
    },
    [
      {
        clause: "an idempotency key that is known is not taken again (where b.until <= now)",
        without: [{ guard: "batch-key-is-over" }],
        because: /no order/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "a batch whose idempotency key is past its time, and that being forgotten",
    {
      async setup(w) {
        await few(w, {});
        w.clock.advance(DEFAULTS.keep.idempotencyKey);
      },
      racers: [
        { run: (w) => few(w, {}, {}), ...STEPS },
        {
          run: async (w) => void (await dutiesOf(w.store).prune({ finished: 30 * DAY, dead: 90 * DAY, limit: 10 })),
          stops: ["forget_idempotent_batches"],
        },
      ],
      afterwards: async (w) => (await w.store.batches.get(REQUEST))?.kind,
    },
    [],
  );
});
