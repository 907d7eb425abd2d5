import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  admitIngest,
  checkIngest,
  counted,
  type IngestAdmission,
  type IngestDemand,
  type IngestLimit,
  type IngestState,
  needsCount,
  UNUSED,
} from "./ingest-limit.js";

const ACME: IngestLimit = { kind: "tenant", name: "acme", rate: { limit: 10, per: 1_000, burst: 20 } };
const MAIL: IngestLimit = { kind: "queue", name: "mail", depth: 100 };
const demand = (jobs: number, limit = 0, waiting = jobs): IngestDemand => ({ perLimit: [{ limit, jobs, waiting }] });
const kinds = (admissions: readonly IngestAdmission[]) => admissions.map(({ kind }) => kind);

describe("a rate", () => {
  test("lets in what its burst allows, and says when the next may come", () => {
    const { admissions, states } = admitIngest([ACME], [UNUSED], [demand(20), demand(5)], 0);
    expect(admissions).toEqual([{ kind: "admitted" }, { kind: "refused", by: { kind: "tenant", name: "acme" }, limit: "rate", retryAfter: 500 }]);
    expect(kinds(admitIngest([ACME], states, [demand(5)], 499).admissions)).toEqual(["refused"]);
    expect(kinds(admitIngest([ACME], states, [demand(5)], 500).admissions)).toEqual(["admitted"]);
  });

  test("judges one by one: a small demand behind a large one that was refused is let in", () => {
    const { admissions } = admitIngest([ACME], [UNUSED], [demand(15), demand(10), demand(5)], 0);
    expect(kinds(admissions)).toEqual(["admitted", "refused", "admitted"]);
  });

  test("lets a demand larger than its burst in when its bucket is full, and makes the next ones wait for all of it", () => {
    const { admissions, states } = admitIngest([ACME], [UNUSED], [demand(100)], 0);
    expect(kinds(admissions)).toEqual(["admitted"]);
    const [refused] = admitIngest([ACME], states, [demand(1)], 0).admissions;
    expect(refused).toMatchObject({ retryAfter: 8_100 });
    expect(admitIngest([ACME], states, [demand(100)], 8_000).admissions[0]).toMatchObject({ kind: "refused", retryAfter: 2_000 });
    expect(kinds(admitIngest([ACME], states, [demand(100)], 10_000).admissions)).toEqual(["admitted"]);
  });

  test("never lets in more than burst + time × rate, whatever is asked for and when, if nobody asks for more than the burst at once", () => {
    const step = fc.record({ wait: fc.integer({ min: 0, max: 3_000 }), jobs: fc.integer({ min: 1, max: 20 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let states: readonly IngestState[] = [UNUSED];
        let now = 0;
        const let_in: { at: number; jobs: number }[] = [];
        for (const { wait, jobs } of steps) {
          now += wait;
          const judged = admitIngest([ACME], states, [demand(jobs)], now);
          states = judged.states;
          const [answer] = judged.admissions as [IngestAdmission];
          if (answer.kind === "admitted") let_in.push({ at: now, jobs });
          // What it says of the wait is true: 2 ms before it is too early, then it is time.
          else {
            expect(kinds(admitIngest([ACME], states, [demand(jobs)], now + answer.retryAfter).admissions)).toEqual(["admitted"]);
            expect(kinds(admitIngest([ACME], states, [demand(jobs)], now + answer.retryAfter - 2).admissions)).toEqual(["refused"]);
          }
        }
        for (let from = 0; from < let_in.length; from++) {
          let sum = 0;
          for (const { at, jobs } of let_in.slice(from)) {
            sum += jobs;
            expect(sum).toBeLessThanOrEqual(20 + (at - (let_in[from] as { at: number }).at) / 100 + 1e-6);
          }
        }
      }),
    );
  });
});

describe("a depth", () => {
  const at = (depth: number, more: Partial<IngestState> = {}): IngestState => ({ ...UNUSED, depth, countedAt: 0, ...more });

  test("lets in what there is room for, and counts what it let in", () => {
    const { admissions, states } = admitIngest([MAIL], [at(60)], [demand(30), demand(20), demand(10)], 0);
    expect(kinds(admissions)).toEqual(["admitted", "refused", "admitted"]);
    expect(states[0]).toMatchObject({ depth: 60, since: 40 });
  });

  test("lets a demand larger than itself in where nothing waits, and nothing more", () => {
    expect(kinds(admitIngest([MAIL], [at(0)], [demand(1_000), demand(1)], 0).admissions)).toEqual(["admitted", "refused"]);
    expect(kinds(admitIngest([MAIL], [at(1)], [demand(1_000)], 0).admissions)).toEqual(["refused"]);
  });

  test("is not asked for jobs that wait for their time or for others", () => {
    expect(kinds(admitIngest([MAIL], [at(100)], [demand(10, 0, 0), demand(1)], 0).admissions)).toEqual(["admitted", "refused"]);
  });

  test("tells how long it takes to drain, as far as that is known", () => {
    const wait = (state: IngestState, jobs = 50) => admitIngest([MAIL], [state], [demand(jobs)], 0).admissions[0];
    expect(wait(at(100))).toMatchObject({ limit: "depth", retryAfter: 1_000 });
    expect(wait(at(100, { drain: 0.1 }))).toMatchObject({ retryAfter: 500 });
    expect(wait(at(100, { drain: 0.0001 }))).toMatchObject({ retryAfter: 60_000 });
    expect(wait(at(100, { drain: 1_000, countAgainAt: 40 }))).toMatchObject({ retryAfter: 40 });
  });

  test("is counted at first, when there seems to be no room, and when the last count is old", () => {
    expect(needsCount(MAIL, UNUSED, 1, 0)).toBe(true);
    expect(needsCount(MAIL, at(10), 50, 9_999)).toBe(false);
    expect(needsCount(MAIL, at(10), 50, 10_000)).toBe(true);
    expect(needsCount(MAIL, at(60, { since: 30, countAgainAt: 50 }), 20, 49)).toBe(false);
    expect(needsCount(MAIL, at(60, { since: 30, countAgainAt: 50 }), 20, 50)).toBe(true);
    expect(needsCount(MAIL, at(100), 0, 10_000)).toBe(false);
    expect(needsCount({}, UNUSED, 1, 0)).toBe(false);
  });

  test("is not counted again before twenty times what counting took, and a count tells how fast it drains", () => {
    const first = counted(UNUSED, 40, 1_000, 10);
    expect(first).toEqual({ depth: 40, since: 0, countedAt: 1_000, countAgainAt: 1_200 });
    expect(counted({ ...first, since: 60 }, 50, 2_000, 0)).toEqual({ depth: 50, since: 0, countedAt: 2_000, countAgainAt: 2_050, drain: 0.05 });
    expect(counted(first, 90, 2_000, 0)).toMatchObject({ drain: 0 });
  });
});

describe("several limits", () => {
  test("are all asked, the longest wait is told, and nothing is taken of one if another refuses", () => {
    const both: IngestDemand = {
      perLimit: [
        { limit: 0, jobs: 25, waiting: 25 },
        { limit: 1, jobs: 25, waiting: 25 },
      ],
    };
    const spent = admitIngest([ACME], [UNUSED], [demand(20)], 0).states[0] as IngestState;
    const { admissions, states } = admitIngest([ACME, MAIL], [spent, { ...UNUSED, depth: 90 }], [both], 0);
    expect(admissions).toEqual([{ kind: "refused", by: { kind: "tenant", name: "acme" }, limit: "rate", retryAfter: 2_000 }]);
    expect(states).toEqual([spent, { ...UNUSED, depth: 90 }]);
  });
});

describe("ingest options", () => {
  test.each([
    [{}, "option_invalid", /limits nothing/],
    [{ depth: 0 }, "option_invalid", /ingest\.depth/],
    [{ depth: -1 }, "option_invalid", /ingest\.depth/],
    [{ depth: Number.NaN }, "option_invalid", /NaN/],
    [{ depth: 1.5 }, "option_invalid", /1\.5/],
    [{ dept: 5 }, "option_invalid", /ingest\.dept.*did you mean depth/],
    [{ rate: { limit: 0, per: "1s" } }, "option_invalid", /ingest\.rate\.limit/],
    [{ rate: { limit: 5 } }, "duration_invalid", /ingest\.rate\.per/],
    [{ rate: { limit: 5, per: 0 } }, "option_invalid", /ingest\.rate\.per/],
    [{ rate: 5 }, "option_invalid", /ingest\.rate/],
    [5, "option_invalid", /ingest/],
    [[], "option_invalid", /ingest/],
  ])("%o is refused", (value, code, says) => {
    expect(() => checkIngest("ingest", value)).toThrow(expect.objectContaining({ code, message: expect.stringMatching(says) }));
  });

  test("are stored in ms, with the burst", () => {
    expect(checkIngest("ingest", { rate: { limit: 5, per: "1m" }, depth: 10 })).toEqual({ rate: { limit: 5, per: 60_000, burst: 5 }, depth: 10 });
  });
});
