import { expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshStage } from "../support/fresh-stage.js";
import { describeOn } from "../support/servers.js";
import { SHORT } from "../support/stage.js";

describeOn("embedded18", () => {
  it("jobs that take their worker down by exit, abort or kill -9 end as poison pills, by crashes and not by attempts, and harm no neighbour (A14)", async () => {
    await using stage = await freshStage();
    const pills = [];
    for (const how of ["exit", "abort", "kill"] as const) {
      await stage.enqueueMany("counter", 10, { ms: 20 });
      pills.push(await stage.enqueue("poison", { how }));
      await stage.enqueueMany("counter", 10, { ms: 20 });
    }

    // A supervisor: whenever the worker is gone, the next one starts.
    const start = () => stage.spawn({ ...SHORT.work, concurrency: 5 }, SHORT.open);
    let current = start();
    await eventually(
      () => `all is finished (${stage.children.length} workers so far; ${current.describe()})`,
      async () => {
        if (current.exit !== undefined) current = start();
        return (await stage.unfinished()) === undefined;
      },
      120_000,
    );

    for (const pill of pills) {
      expect(await pill.get()).toMatchObject({ state: "dead", crashes: 3, attempts: 0, failure: { kind: "poison" } });
      expect((await pill.history()).filter(({ outcome }) => outcome === "crashed")).toHaveLength(3);
    }
    expect(await stage.pawl.counts()).toMatchObject({ succeeded: 60, dead: 3 });
    await stage.check();
  });
});
