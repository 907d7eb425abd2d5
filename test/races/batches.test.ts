import { DEFAULTS } from "../../packages/pawl/src/core/defaults.js";
import { DAY, type Spec, type World } from "../../packages/pawl/src/store/conformance/world.js";
import type { BatchRequest } from "../../packages/pawl/src/store/port-batches.js";
import { EVERYWHERE, races } from "../support/race.js";
import type { Pieces } from "../support/racing-session.js";

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

const TIME = "coalesce(to_timestamp($1::float8 / 1000), statement_timestamp())";
const STEPS: Pieces = { stops: ["begin_batch", "commit"] };

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
        clause: "a request id that is known is not taken again (where b.until <= now)",
        without: [{ statement: "begin_batch", from: `where b.until <= ${TIME}`, to: "" }],
        because: /no order/,
      },
    ],
    EVERYWHERE,
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
        clause: "a request id that is known is not taken again (where b.until <= now)",
        without: [{ statement: "begin_batch", from: `where b.until <= ${TIME}`, to: "" }],
        because: /no order/,
      },
    ],
    EVERYWHERE,
  );

  race(
    "a batch whose request id is past its time, and that being forgotten",
    {
      async setup(w) {
        await few(w, {});
        w.clock.advance(DEFAULTS.keep.request);
      },
      racers: [
        { run: (w) => few(w, {}, {}), ...STEPS },
        { run: async (w) => void (await w.store.duties.prune({ finished: 30 * DAY, dead: 90 * DAY, limit: 10 })), stops: ["forget_batches"] },
      ],
      afterwards: async (w) => (await w.store.batches.get(REQUEST))?.kind,
    },
    [],
  );
});
