import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { MINUTE, SECOND, type World } from "../../packages/pawl/conformance/world.js";
import type { UniqueRule } from "../../packages/pawl/src/core/jobs/unique-key.js";
import { ALL_SERVERS, races } from "../support/races/race.js";
import type { VerbPieces } from "../support/races/racing-session.js";
import { CLAIM_SNAPSHOT, PROMOTE_SNAPSHOT, TAKE_SNAPSHOT, takeWithoutCheck } from "./statement-splits.js";

const debounced = {
  unique: { key: "k", hold: "unstarted", onConflict: "replace", debounce: { wait: SECOND, longest: MINUTE } } as UniqueRule,
  delay: SECOND,
};
const throttled = { unique: { key: "k", hold: MINUTE, onConflict: "existing" } as UniqueRule };

const REPLACE: VerbPieces = { stops: ["lock_keys", "facts", "commit"], splits: [TAKE_SNAPSHOT] };
const KEYED: VerbPieces = { stops: ["lock_keys", "commit"] };

const KEY_LOCKED = {
  clause: "LOCK_KEYS locks the key it finds, and answers with its holder (do update)",
  without: [{ guard: "holder-stays", becomes: "excluded.job" }],
  because: /no order/,
} as const;

/** One that waits for quiet, half of which has passed. */
async function waiting(w: World): Promise<void> {
  await w.enqueue(debounced);
  w.clock.advance(SECOND / 2);
}

/** One whose time of quiet is over. */
async function due(w: World): Promise<void> {
  await w.enqueue(debounced);
  w.clock.advance(SECOND);
}

races((race) => {
  race(
    "two debounced jobs that would both take over from a third",
    {
      setup: waiting,
      racers: [
        { run: (w) => w.enqueue(debounced), ...REPLACE },
        { run: (w) => w.enqueue(debounced), ...REPLACE },
      ],
    },
    [KEY_LOCKED],
    ALL_SERVERS,
  );

  race(
    "two debounced jobs, the first of their key",
    {
      setup: async () => undefined,
      racers: [
        { run: (w) => w.enqueue(debounced), ...KEYED },
        { run: (w) => w.enqueue(debounced), ...KEYED },
      ],
    },
    [KEY_LOCKED],
  );

  race(
    "a debounced job, and the promotion of the one it takes over from",
    {
      setup: due,
      racers: [
        { run: (w) => w.enqueue(debounced), ...REPLACE },
        { run: async (w) => (await dutiesOf(w.store).promote(10)).count, splits: [PROMOTE_SNAPSHOT] },
      ],
    },
    [
      {
        clause: "take answers with what it deleted, not with what it saw",
        without: [takeWithoutCheck("scheduled")],
        because: /is in|no order/,
      },
    ],
  );

  race(
    "a debounced job, and the claim of the one it takes over from",
    {
      async setup(w) {
        await due(w);
        await dutiesOf(w.store).promote(10);
      },
      racers: [
        { run: (w) => w.enqueue(debounced), ...REPLACE },
        { run: (w) => w.claimIds({ limit: 1 }), splits: [CLAIM_SNAPSHOT] },
      ],
    },
    [
      {
        clause: "take answers with what it deleted, not with what it saw",
        without: [takeWithoutCheck("ready")],
        because: /is in history and lease/,
      },
    ],
  );

  race(
    "two throttled jobs of one key",
    {
      setup: async () => undefined,
      racers: [
        { run: (w) => w.enqueue(throttled), ...KEYED },
        { run: (w) => w.enqueue(throttled), ...KEYED },
      ],
      // Whoever comes later in its time is answered with the one there is.
      afterwards: (w) => w.enqueue(throttled),
    },
    [KEY_LOCKED],
    ALL_SERVERS,
  );

  race(
    "two throttled jobs of a key whose time has just ended",
    {
      async setup(w) {
        await w.enqueue(throttled);
        w.clock.advance(MINUTE);
      },
      racers: [
        { run: (w) => w.enqueue(throttled), stops: ["lock_keys", "facts", "commit"] },
        { run: (w) => w.enqueue(throttled), stops: ["lock_keys", "facts", "commit"] },
      ],
    },
    [KEY_LOCKED],
  );
});
