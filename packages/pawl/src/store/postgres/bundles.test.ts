import { describe, expect, it } from "vitest";
import type { JobId, LeaseId } from "../../core/id.js";
import type { Lane } from "../../core/lane.js";
import type { Settlement } from "../port-leases.js";
import { HeldLeases } from "./bundles.js";

const LEASE = "1" as LeaseId;
const lane: Lane = { queue: "q", band: 5, tenant: "t", task: "x" };
const jobs = Array.from({ length: 8 }, (_, n) => `job ${n + 1}` as JobId);

function settlement(place: number, spent = 1): Settlement {
  const patch = { outcome: "succeeded", next: "succeeded", spent, crashes: 0 } as const;
  return { lease: LEASE, job: jobs[place - 1] as JobId, lane, patch, startedAt: 0, finishedAt: 1 };
}

/** Five jobs out of one parcel, one out of another, and two that were rows. */
function held(): HeldLeases {
  const leases = new HeldLeases(2);
  leases.add(LEASE, jobs, [
    { seq: 1024, from: 1, to: 5 },
    { seq: 2048, from: 6, to: 6 },
  ]);
  return leases;
}

/** The places in bundles, and the jobs that become rows. */
function sorted(settlements: readonly Settlement[]) {
  const { bundles, rest } = held().sort(settlements) ?? { bundles: [], rest: [] };
  return { bundles: bundles.map(({ seq, from, to }) => ({ seq, from, to })), rest: rest.map(({ job }) => job) };
}

describe("settlements of a lease with jobs out of parcels", () => {
  it("are bundled by parcel, however few came out of one, where nothing else is to be written", () => {
    expect(sorted([1, 2, 3, 4, 5, 6].map((place) => settlement(place)))).toEqual({
      bundles: [
        { seq: 1024, from: 1, to: 5 },
        { seq: 2048, from: 6, to: 6 },
      ],
      rest: [],
    });
  });

  it("become rows where few came out of a parcel and rows are to be written anyway", () => {
    expect(sorted([1, 2, 6, 7].map((place) => settlement(place)))).toEqual({
      bundles: [{ seq: 1024, from: 1, to: 2 }],
      rest: ["job 7", "job 6"],
    });
  });

  it("become rows where they are too few for a bundle, all of them", () => {
    expect(sorted([6, 2].map((place) => settlement(place)))).toEqual({ bundles: [], rest: ["job 2", "job 6"] });
  });

  it("are not bundled across one that went another way", () => {
    expect(sorted([settlement(1), settlement(2), settlement(3, 2), settlement(4), settlement(5)])).toEqual({
      bundles: [
        { seq: 1024, from: 1, to: 2 },
        { seq: 1027, from: 4, to: 5 },
      ],
      rest: ["job 3"],
    });
  });

  it("are sent back as they are where one is there twice", () => {
    expect(held().sort([settlement(1), settlement(1)])).toBeUndefined();
    expect(held().sort([settlement(7), settlement(7)])).toBeUndefined();
  });
});
