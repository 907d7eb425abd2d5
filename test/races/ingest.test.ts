import { SECOND, type World } from "../../packages/pawl/conformance/world.js";
import type { IngestDemand, IngestLimit } from "../../packages/pawl/src/core/limits/ingest-limit.js";
import { ALL_SERVERS, races } from "../support/races/race.js";
import type { StatementSplit, VerbPieces } from "../support/races/racing-session.js";

const rate = { limit: 1, per: SECOND, burst: 10 };
const ACME: IngestLimit = { kind: "tenant", name: "acme", rate };
const MAIL: IngestLimit = { kind: "queue", name: "mail", rate };
const DEEP: IngestLimit = { kind: "queue", name: "default", depth: 10 };

const demand = (...limits: readonly number[]): IngestDemand => ({ perLimit: limits.map((limit) => ({ limit, jobs: 6, waiting: 6 })) });
const take = (limits: readonly IngestLimit[]) => async (w: World) =>
  (await w.store.ingest.take(limits, [demand(...limits.keys())])).map(({ kind }) => kind);

const TAKE: VerbPieces = { stops: ["lock_ingest", "save_ingest", "commit"] };
const FIRST_TAKE: VerbPieces = { stops: ["lock_ingest", "enter_ingest", "save_ingest", "commit"] };
/** Between the two names that are entered, before the one that comes last. */
const BEFORE_LAST: StatementSplit = {
  at: "between-ingest-limits",
  to: (barrier, kind) => `case when g.kind = 'tenant' and ${barrier} then ${kind} else ${kind} end`,
};
const UNLOCKED = { guard: "ingest-limit-locked" };

races((race) => {
  race(
    "two demands under one rate, which has tokens for one of them",
    {
      setup: (w) => w.store.ingest.take([ACME], [{ perLimit: [{ limit: 0, jobs: 1, waiting: 1 }] }]),
      racers: [
        { run: take([ACME]), ...TAKE },
        { run: take([ACME]), ...TAKE },
      ],
    },
    [{ clause: "LOCK locks what is remembered of the limit", without: [UNLOCKED], because: /no order/ }],
    ALL_SERVERS,
  );

  race(
    "two demands under one depth, which has room for one of them",
    {
      setup: (w) => w.store.ingest.take([DEEP], [{ perLimit: [{ limit: 0, jobs: 1, waiting: 1 }] }]),
      racers: [
        { run: take([DEEP]), ...TAKE },
        { run: take([DEEP]), ...TAKE },
      ],
    },
    [{ clause: "LOCK locks what is remembered of the limit", without: [UNLOCKED], because: /no order/ }],
  );

  race(
    "the first two demands ever under one rate",
    {
      setup: async () => undefined,
      racers: [
        { run: take([ACME]), ...FIRST_TAKE },
        { run: take([ACME]), ...FIRST_TAKE },
      ],
    },
    // Whoever enters what another is entering waits for that one: the key of the table is the guard.
    [],
  );

  race(
    "two demands under the same two limits, the other way round",
    {
      setup: async () => undefined,
      racers: [
        { run: take([MAIL, ACME]), stops: ["commit"], splits: [BEFORE_LAST] },
        { run: take([ACME, MAIL]), stops: ["commit"], splits: [BEFORE_LAST] },
      ],
    },
    [
      {
        clause: "limits are entered in the order of their names",
        without: [{ guard: "ingest-limits-in-order" }],
        because: /circle/,
      },
    ],
  );
});
