import { expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshFixture } from "../support/fixtures/fresh-fixture.js";
import { SHORT_LEASES } from "../support/fixtures/process-fixture.js";
import { describeOn } from "../support/servers/servers.js";

describeOn("embedded18", () => {
  it("jobs that take their worker down by exit, abort or kill -9 end as poison pills, by crashes and not by attempts, and harm no neighbour (A14)", async () => {
    await using fixture = await freshFixture();
    const pills = [];
    for (const how of ["exit", "abort", "kill"] as const) {
      await fixture.enqueueMany("counter", 10, { ms: 20 });
      pills.push(await fixture.enqueue("poison", { how }));
      await fixture.enqueueMany("counter", 10, { ms: 20 });
    }

    // A supervisor: whenever the worker is gone, the next one starts.
    const start = () => fixture.spawn({ ...SHORT_LEASES.work, concurrency: 5 }, SHORT_LEASES.open);
    let current = start();
    await eventually(
      () => `all is finished (${fixture.children.length} workers so far; ${current.describe()})`,
      async () => {
        if (current.exit !== undefined) current = start();
        return (await fixture.unfinished()) === undefined;
      },
      120_000,
    );

    for (const pill of pills) {
      expect(await pill.get()).toMatchObject({ state: "dead", crashes: 3, attempts: 0, failure: { kind: "poison" } });
      expect((await pill.history()).items.filter(({ outcome }) => outcome === "crashed")).toHaveLength(3);
    }
    expect(await fixture.pawl.counts()).toMatchObject({ succeeded: 60, dead: 3 });
    await fixture.check();
  });
});
