import { describe, expect, it } from "vitest";
import { open } from "../../packages/pawl/src/index.js";
import { proxiedFixture } from "../support/fixtures/fresh-fixture.js";
import { SHORT_LEASES, STEADY_LEASES } from "../support/fixtures/process-fixture.js";
import { childTasks } from "../support/processes/worker-tasks.js";
import { describeOn } from "../support/servers/servers.js";
import type { StopPoint } from "../support/servers/tcp-proxy.js";

interface Point extends StopPoint {
  readonly moment: string;
  readonly task: "quick" | "counter" | "once" | "fragile";
  /** how often its handler was begun, by the dead worker and by its heir */
  readonly starts: number;
  readonly history: readonly string[];
  /** of `once`: how often its effect outside was had */
  readonly effects?: number;
}

const AGAIN = ["crashed", "succeeded"];
const DONE = ["succeeded"];
/** `once` fails twice before it succeeds. */
const TRIES = ["failed", "failed", "succeeded"];

/** Every request that a worker sends for a job, from its claim to its end: not yet with the server, and answered by it. */
const POINTS: readonly Point[] = [
  { moment: "before its claim arrives", task: "quick", at: /pawl_claim/, when: "before", starts: 1, history: DONE },
  { moment: "with its claim answered, before it knows", task: "quick", at: /pawl_claim/, when: "after", starts: 1, history: AGAIN },
  { moment: "with its handler done, before the settlement arrives", task: "quick", at: /pawl_settle/, when: "before", starts: 2, history: AGAIN },
  { moment: "with the settlement answered, before it knows", task: "quick", at: /pawl_settle/, when: "after", starts: 1, history: DONE },
  { moment: "before its handler writes in the transaction", task: "counter", at: /public\.effects/, when: "before", starts: 2, history: AGAIN },
  { moment: "with its handler's write done", task: "counter", at: /public\.effects/, when: "after", starts: 2, history: AGAIN },
  { moment: "with everything written, before the commit arrives", task: "counter", at: /commit\0/, when: "before", starts: 2, history: AGAIN },
  { moment: "with the commit answered, before it knows", task: "counter", at: /commit\0/, when: "after", starts: 1, history: DONE },
  {
    moment: "with an effect had, before its record arrives",
    task: "once",
    at: /pawl_record\0/,
    when: "before",
    starts: 4,
    history: ["crashed", ...TRIES],
    effects: 2,
  },
  {
    moment: "with an effect recorded, before it knows",
    task: "once",
    at: /pawl_record\0/,
    when: "after",
    starts: 4,
    history: ["crashed", ...TRIES],
    effects: 1,
  },
  { moment: "with a claim of what may run once answered", task: "fragile", at: /pawl_claim/, when: "after", starts: 0, history: ["crashed"] },
  { moment: "with what may run once done, not settled", task: "fragile", at: /pawl_settle/, when: "before", starts: 1, history: ["crashed"] },
];

describeOn("embedded18", () => {
  describe.concurrent("a worker killed with -9", () => {
    for (const { moment, task, starts, history, effects = 0, ...stop } of POINTS) {
      it(`${moment}: its ${task} job is lost nowhere and done twice nowhere (B1, I4)`, async () => {
        const { fixture, proxy } = await proxiedFixture();
        await using _ = fixture;
        const job = await fixture.enqueue(task);
        const stopped = proxy.stopAt(stop);
        // Without maintenance the requests on the wire are those for its jobs.
        const victim = fixture.spawn({ ...STEADY_LEASES.work, concurrency: 1 }, { maintenance: false });
        await stopped;
        await victim.kill();

        await using heir = await open(fixture.directUrl, { tasks: childTasks(fixture.handlerLog), ...SHORT_LEASES.open });
        await heir.work({ ...SHORT_LEASES.work, pollInterval: "100ms" });
        await fixture.drained();
        expect(await fixture.history(job.id)).toEqual(history);
        expect(fixture.handlerLog.of(job.id, "start")).toHaveLength(starts);
        expect(fixture.handlerLog.of(job.id, "effect")).toHaveLength(effects);
        const { state, failure } = await job.get();
        expect({ state, kind: failure?.kind }).toEqual(
          task === "fragile" ? { state: "dead", kind: "interrupted" } : { state: "succeeded", kind: undefined },
        );
        await fixture.check();
      });
    }
  });
});
