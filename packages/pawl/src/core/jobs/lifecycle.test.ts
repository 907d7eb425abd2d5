import { describe, expect, it } from "vitest";
import { FINISHED, JOB_STATES, type JobState, PENDING } from "./job.js";
import { allowed, applies, ENTRY, LIFECYCLE, lifecycleTable, VERBS, type Verb } from "./lifecycle.js";

/**
 * The whole matrix, written out a second time by hand: `·` is where a verb does not apply. A change of the table that
 * is not made here too was not meant.
 */
const MATRIX = `
           promote       admit  unblock                      claim    settle                                           reap                         expire  cancel     pause    resume                  redrive                 delete
blocked    ·             ·      ready,scheduled,parked,dead  ·        ·                                                ·                            dead    cancelled  blocked  blocked                 ·                       ·
scheduled  ready,parked  ·      ·                            ·        ·                                                ·                            dead    cancelled  parked   ·                       ·                       ·
ready      ·             ·      ·                            running  ·                                                ·                            dead    cancelled  parked   ·                       ·                       ·
parked     ·             ready  ·                            ·        ·                                                ·                            dead    cancelled  parked   ready,scheduled,parked  ·                       ·
running    ·             ·      ·                            ·        succeeded,scheduled,ready,parked,dead,cancelled  ready,parked,dead,cancelled  ·       running    running  running                 ·                       ·
succeeded  ·             ·      ·                            ·        ·                                                ·                            ·       ·          ·        ·                       ·                       deleted
dead       ·             ·      ·                            ·        ·                                                ·                            ·       ·          ·        ·                       ready,scheduled,parked  deleted
cancelled  ·             ·      ·                            ·        ·                                                ·                            ·       ·          ·        ·                       ·                       deleted
`;

const [head = [], ...rows] = MATRIX.trim()
  .split("\n")
  .map((line) => line.trim().split(/\s+/));
const TARGETS = [...JOB_STATES, "deleted"] as const;

describe("the lifecycle", () => {
  it("is written out here in full", () => {
    expect(head).toEqual(VERBS.filter((verb) => verb !== "enqueue"));
    expect(rows.map(([state]) => state)).toEqual(JOB_STATES);
  });

  for (const [state, ...cells] of rows) {
    for (const [n, cell] of cells.entries()) {
      const verb = head[n] as Verb;
      it(`${verb} from ${state} leads to ${cell === "·" ? "nothing" : cell}`, () => {
        const targets = cell === "·" ? [] : cell.split(",");
        expect(applies(verb, state as JobState)).toBe(targets.length > 0);
        for (const target of TARGETS) expect(allowed(state as JobState, verb, target), target).toBe(targets.includes(target));
      });
    }
  }

  it("lets a job begin by an enqueue only", () => {
    expect(Object.keys(ENTRY)).toEqual(["enqueue"]);
    for (const state of JOB_STATES) expect(applies("enqueue", state)).toBe(false);
  });

  it("has one way out of running for a worker, and one for the reaper", () => {
    const out = VERBS.filter((verb) => LIFECYCLE.running[verb]?.some((to) => to !== "running"));
    expect(out).toEqual(["settle", "reap"]);
  });

  it("ends every finished job for good, but for redriving the dead and deleting", () => {
    for (const state of FINISHED) {
      const verbs = VERBS.filter((verb) => applies(verb, state));
      expect(verbs).toEqual(state === "dead" ? ["redrive", "delete"] : ["delete"]);
    }
  });

  it("lets every pending job be cancelled and expire", () => {
    for (const state of PENDING) {
      expect(allowed(state, "cancel", "cancelled")).toBe(true);
      expect(allowed(state, "expire", "dead")).toBe(true);
    }
  });

  it("reaches every state from an enqueue, and an end from every state", () => {
    const reach = (from: readonly string[]) => {
      const seen = new Set(from);
      for (const state of seen) for (const targets of Object.values(LIFECYCLE[state as JobState] ?? {})) for (const to of targets) seen.add(to);
      return seen;
    };
    expect([...reach(["ready", "scheduled", "blocked"])].sort()).toEqual([...JOB_STATES, "deleted"].sort());
    for (const state of JOB_STATES) expect(reach([state]).has("deleted")).toBe(true);
  });

  it("prints itself as a table for the docs", () => {
    const lines = lifecycleTable().split("\n");
    expect(lines).toHaveLength(JOB_STATES.length + 2);
    expect(lines[0]).toBe(`| state | ${head.join(" | ")} |`);
    expect(lines.find((line) => line.startsWith("| **dead**"))).toContain("ready, scheduled");
    for (const line of lines) expect(line.split("|")).toHaveLength(VERBS.length + 2);
  });
});
