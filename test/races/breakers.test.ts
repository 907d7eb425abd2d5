import { MINUTE, type World } from "../../packages/pawl/conformance/world.js";
import { type BreakerRule, CHECKING_MS } from "../../packages/pawl/src/core/limits/breaker.js";
import type { BreakerRef } from "../../packages/pawl/src/store/port/limits/breakers.js";
import { ALL_SERVERS, races } from "../support/races/race.js";
import type { StatementSplit, VerbPieces } from "../support/races/racing-session.js";

const RULE: BreakerRule = { failureRate: 0.9, window: 5 * MINUTE, minOutcomes: 20, probeInterval: MINUTE };
const A: BreakerRef = { tenant: "a", task: "work" };
const B: BreakerRef = { tenant: "b", task: "work" };

const REPORT: VerbPieces = { stops: ["take_breakers", "commit"] };
/** Between the rows of one report, as they are locked: before the one that comes last. */
const BEFORE_LAST: StatementSplit = {
  at: "between-breakers",
  to: (barrier, rule) => `case when g.tenant = 'b' and ${barrier} then ${rule} else ${rule} end`,
};
const PROBE: VerbPieces = { stops: ["lock_breakers", "commit"], splits: [{ at: "lock-breakers-snapshot" }] };

async function failed(w: World, count: number, ...refs: readonly BreakerRef[]): Promise<unknown> {
  const reports = refs.map((ref) => ({ ...ref, rule: RULE, samples: [{ succeeded: 0, failed: count, ago: 0 }] }));
  return (await w.store.breakers.report(reports)).map(({ state, failed: all }) => [state, all]);
}
async function open(w: World): Promise<void> {
  await failed(w, 20, A);
  w.clock.advance(CHECKING_MS);
  await failed(w, 1, A);
  w.clock.advance(MINUTE);
}
const summary = async (w: World) =>
  (await w.store.breakers.list({}, { limit: 10 })).map(({ tenant, state, failed: all, probeAt }) => [tenant, state, all, probeAt]);

/** Takes the rows it saw, whoever has changed them since. */
const UNLOCKED = [
  {
    guard: "found-breaker-locked",
    becomes(clause: string) {
      if (clause.startsWith("insert")) return `with made as (${clause}`;
      return clause.startsWith("do update")
        ? "do nothing)"
        : `${clause.replace("returning", "select")} from pawl.breaker b where b.tenant = any($2::text[])`;
    },
  },
];

races((race) => {
  race(
    "two workers that report on one breaker",
    {
      setup: (w) => failed(w, 9, A),
      racers: [
        { run: (w) => failed(w, 6, A), ...REPORT },
        { run: (w) => failed(w, 5, A), ...REPORT },
      ],
      afterwards: summary,
    },
    [{ clause: "TAKE locks the row it finds, and answers as it is then (do update)", without: UNLOCKED, because: /no order/ }],
    ALL_SERVERS,
  );

  race(
    "two workers that are the first to report on one breaker",
    {
      setup: async () => undefined,
      racers: [
        { run: (w) => failed(w, 12, A), ...REPORT },
        { run: (w) => failed(w, 11, A), ...REPORT },
      ],
      afterwards: summary,
    },
    [],
  );

  race(
    "two reports on the same breakers the other way round",
    {
      setup: async () => undefined,
      racers: [
        { run: (w) => failed(w, 1, A, B), stops: ["commit"], splits: [BEFORE_LAST] },
        { run: (w) => failed(w, 2, B, A), stops: ["commit"], splits: [BEFORE_LAST] },
      ],
      afterwards: summary,
    },
    [
      {
        clause: "breakers are locked in sorted order",
        without: [{ guard: "breakers-in-order" }],
        because: /circle/,
      },
    ],
  );

  race(
    "two workers that ask for leave to probe",
    {
      setup: open,
      racers: [
        { run: async (w) => (await w.store.breakers.probe([A])).length, ...PROBE },
        { run: async (w) => (await w.store.breakers.probe([A])).length, ...PROBE },
      ],
      afterwards: summary,
    },
    [
      {
        clause: "LOCK waits for whoever asks too, and reads after it (for update)",
        without: [{ guard: "breaker-locked" }],
        because: /no order/,
      },
    ],
    ALL_SERVERS,
  );

  race(
    "a person who opens a breaker, and a report that it works",
    {
      setup: (w) => failed(w, 20, A),
      racers: [
        { run: async (w) => (await w.store.breakers.force(A, "open")).state, ...REPORT },
        {
          run: async (w) =>
            (await w.store.breakers.report([{ ...A, rule: RULE, samples: [{ succeeded: 50, failed: 0, ago: 0 }] }])).map(({ state }) => state),
          ...REPORT,
        },
      ],
      afterwards: summary,
    },
    [{ clause: "TAKE locks the row it finds, and answers as it is then (do update)", without: UNLOCKED, because: /no order/ }],
  );
});
