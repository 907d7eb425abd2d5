import { expect } from "vitest";
import type { JobId } from "../src/core/jobs/id.js";
import { JOB_STATES, type JobState } from "../src/core/jobs/job.js";
import { allowed, applies } from "../src/core/jobs/lifecycle.js";
import type { Store } from "../src/store/port/index.js";
import type { JobChangeResult } from "../src/store/port/jobs/jobs.js";
import type { Test } from "./suite.js";
import { HOUR, KILLED, NOBODY, SUCCEEDED, type World } from "./world.js";

/** The verbs by which people change one job. */
const VERBS = {
  cancel: (store: Store, id: JobId) => store.jobs.cancel("everyone", id, "why not"),
  pause: (store: Store, id: JobId) => store.jobs.pause("everyone", id),
  resume: (store: Store, id: JobId) => store.jobs.resume("everyone", id),
  promote: (store: Store, id: JobId) => store.jobs.promote("everyone", id),
  redrive: (store: Store, id: JobId) => store.jobs.redrive("everyone", id, {}),
  delete: (store: Store, id: JobId) => store.jobs.delete("everyone", id),
} satisfies Record<string, (store: Store, id: JobId) => Promise<JobChangeResult>>;

/** A job in each state. */
const MAKERS: Record<JobState, (w: World) => Promise<JobId>> = {
  blocked: async (w) => w.add({ after: [await w.add({ task: "parent" })] }),
  scheduled: (w) => w.add({ delay: HOUR }),
  ready: (w) => w.add(),
  parked: async (w) => {
    const id = await w.add();
    await w.store.jobs.pause("everyone", id);
    return id;
  },
  running: async (w) => {
    const id = await w.add();
    await w.hold();
    return id;
  },
  succeeded: (w) => ended(w, SUCCEEDED),
  dead: (w) => ended(w, KILLED),
  cancelled: (w) => ended(w, { kind: "cancelled" }),
};

async function ended(w: World, outcome: Parameters<World["run"]>[1]): Promise<JobId> {
  const id = await w.add();
  await w.run(id, outcome);
  return id;
}

/** Every verb in every state does what the lifecycle table says, and nothing where it says nothing. */
export function matrixTests(test: Test): void {
  for (const state of JOB_STATES) {
    for (const [verb, act] of Object.entries(VERBS) as [keyof typeof VERBS, (typeof VERBS)["delete"]][]) {
      const answer = applies(verb, state) ? "does what the lifecycle says" : "is refused";
      test(`${verb} of a job that is ${state} ${answer}`, async (w) => {
        const id = await MAKERS[state](w);
        const before = await w.get(id);
        expect(before.state).toBe(state);
        const change = await act(w.store, id);
        const after = await w.store.jobs.get("everyone", id);
        if (!applies(verb, state)) {
          expect(change).toEqual({ kind: "refused", state });
          expect(after).toEqual(before);
          return;
        }
        const to = after?.state ?? "deleted";
        expect(change).toEqual({ kind: "changed", from: state, to });
        expect(allowed(state, verb, to)).toBe(true);
      });
    }
  }

  for (const [verb, act] of Object.entries(VERBS)) {
    test(`${verb} of a job that does not exist says so`, async (w) => {
      expect(await act(w.store, NOBODY)).toEqual({ kind: "unknown" });
    });
  }
}
