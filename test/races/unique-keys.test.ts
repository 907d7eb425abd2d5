import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { DAY, HOUR, type World } from "../../packages/pawl/conformance/world.js";
import type { UniqueRule } from "../../packages/pawl/src/core/jobs/unique-key.js";
import { ALL_SERVERS, races } from "../support/races/race.js";
import type { StatementSplit, VerbPieces } from "../support/races/racing-session.js";
import { CLAIM_SNAPSHOT, PROMOTE_SNAPSHOT, TAKE_SNAPSHOT, takeWithoutCheck } from "./statement-splits.js";

const key = (name: string, onConflict: UniqueRule["onConflict"], hold: UniqueRule["hold"] = "unfinished") => ({
  unique: { key: name, hold, onConflict },
});
const RULES = { finished: 30 * DAY, dead: 90 * DAY, limit: 100 };

/** Between the keys of one batch, as they are locked: before the one that comes last. */
const BEFORE_LAST_KEY: StatementSplit = {
  at: "between-unique-keys",
  to: (barrier, hold) => `case when g.key = 'l' and ${barrier} then ${hold} else ${hold} end`,
};
const KEYED: VerbPieces = { stops: ["lock_keys", "commit"] };
const REPLACE: VerbPieces = { stops: ["lock_keys", "facts", "commit"], splits: [TAKE_SNAPSHOT] };

const FORGETTING_KEYS: StatementSplit = { at: "forgettable-keys-snapshot" };

async function finishedHolder(w: World): Promise<void> {
  await w.run(await w.add(key("k", "reject")));
}

races((race) => {
  for (const onConflict of ["existing", "reject"] as const) {
    race(
      `two jobs with one key, of which the second is to be answered by "${onConflict}"`,
      {
        setup: async () => undefined,
        racers: [
          { run: (w) => w.enqueue(key("k", onConflict)), ...KEYED },
          { run: (w) => w.enqueue(key("k", onConflict)), ...KEYED },
        ],
      },
      [
        {
          clause: "LOCK_KEYS locks the key it finds, and answers with its holder (do update)",
          without: [{ guard: "holder-stays", becomes: "excluded.job" }],
          because: /no order/,
        },
      ],
      onConflict === "reject" ? ALL_SERVERS : undefined,
    );
  }

  race(
    "two batches with the same keys the other way round",
    {
      setup: async () => undefined,
      racers: [
        { run: (w) => w.enqueue(key("k", "existing"), key("l", "existing")), stops: ["commit"], splits: [BEFORE_LAST_KEY] },
        { run: (w) => w.enqueue(key("l", "existing"), key("k", "existing")), stops: ["commit"], splits: [BEFORE_LAST_KEY] },
      ],
    },
    [
      {
        clause: "keys are locked in sorted order",
        without: [{ guard: "unique-keys-in-order" }],
        because: /circle/,
      },
    ],
  );

  race(
    "a job that replaces the holder of its key, and the claim of that",
    {
      setup: (w) => w.add(key("k", "replace")),
      racers: [
        // In a lane of its own: a claim need not see what came after it began.
        { run: (w) => w.enqueue({ ...key("k", "replace"), priority: 9 }), ...REPLACE },
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
    "a job that replaces the holder of its key, and the promotion of that",
    {
      async setup(w) {
        await w.add({ ...key("k", "replace"), delay: HOUR });
        w.clock.advance(HOUR);
      },
      racers: [
        { run: (w) => w.enqueue(key("k", "replace")), ...REPLACE },
        { run: async (w) => (await dutiesOf(w.store).promote(10)).count, splits: [PROMOTE_SNAPSHOT] },
      ],
    },
    // The clause is in judgeKeyed, which looks again: unique-keys-single-look.test.ts shows this race without it.
    [],
  );

  race(
    "a request and the same request again",
    {
      setup: async () => undefined,
      racers: [
        { run: (w) => w.enqueue({ idempotencyKey: "r" }), stops: ["lock_requests", "commit"] },
        { run: (w) => w.enqueue({ idempotencyKey: "r" }), stops: ["lock_requests", "commit"] },
      ],
    },
    [
      {
        clause: "LOCK_REQUESTS locks the request it finds, and answers with its first job",
        without: [{ guard: "first-job-stays", becomes: "excluded.job" }],
        because: /no order/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "a request and another job with the same idempotency key",
    {
      setup: async () => undefined,
      racers: [
        { run: (w) => w.enqueue({ idempotencyKey: "r", input: "1" }), stops: ["lock_requests", "commit"] },
        { run: (w) => w.enqueue({ idempotencyKey: "r", input: "2" }), stops: ["lock_requests", "commit"] },
      ],
    },
    [
      {
        clause: "LOCK_REQUESTS keeps the digest of the first job",
        without: [{ guard: "first-digest-stays", becomes: "excluded.digest" }],
        because: /no order/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "two batches with the same requests the other way round",
    {
      setup: async () => undefined,
      racers: [
        { run: (w) => w.enqueue({ idempotencyKey: "k" }, { idempotencyKey: "l" }), stops: ["commit"], splits: [beforeLastRequest()] },
        { run: (w) => w.enqueue({ idempotencyKey: "l" }, { idempotencyKey: "k" }), stops: ["commit"], splits: [beforeLastRequest()] },
      ],
    },
    [
      {
        clause: "requests are locked in sorted order",
        without: [{ guard: "idempotency-keys-in-order" }],
        because: /circle/,
      },
    ],
  );

  race(
    "a prune that forgets a key nobody holds, and a job that takes it",
    {
      setup: finishedHolder,
      racers: [
        { run: (w) => w.enqueue(key("k", "reject")), stops: ["lock_keys", "commit"] },
        { run: async (w) => void (await dutiesOf(w.store).prune(RULES)), stops: ["forget_effects", "commit"], splits: [FORGETTING_KEYS] },
      ],
      // Whoever comes later meets the job that took the key.
      afterwards: (w) => w.enqueue(key("k", "reject")),
    },
    [
      {
        clause: "keys are locked and then judged again (FORGETTABLE_KEYS, FORGET_KEYS)",
        without: [{ guard: "forgettable-key-locked" }],
        because: /no order/,
      },
    ],
  );

  race(
    "a prune that forgets an old request, and the same request anew",
    {
      async setup(w) {
        await w.run(await w.add({ idempotencyKey: "r" }));
        w.clock.advance(2 * DAY);
      },
      racers: [
        { run: (w) => w.enqueue({ idempotencyKey: "r" }), stops: ["lock_requests", "commit"] },
        { run: async (w) => void (await dutiesOf(w.store).prune(RULES)), splits: [{ at: "forget-idempotency-keys-snapshot" }] },
      ],
      afterwards: (w) => w.enqueue({ idempotencyKey: "r" }),
    },
    [
      {
        clause: "requests are locked where their time is judged (for update skip locked)",
        without: [{ guard: "forgotten-idempotency-keys-locked" }],
        because: /no order/,
      },
    ],
  );
});

function beforeLastRequest(): StatementSplit {
  return {
    at: "between-idempotency-keys",
    to: (barrier, id) => `case when g.id <> 'l' or ${barrier} then ${id} end`,
  };
}
