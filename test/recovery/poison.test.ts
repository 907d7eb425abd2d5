import { expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshStage } from "../support/fresh-stage.js";
import { describeOn } from "../support/servers.js";
import { SHORT } from "../support/stage.js";

describeOn("embedded18", () => {
  for (const how of ["kill", "exit", "abort"] as const) {
    it.concurrent(`ends a job that takes its worker down by ${how} as a poison pill, by crashes and not by attempts, and harms no neighbour (A14)`, async () => {
      await using stage = await freshStage();
      await stage.enqueueMany("counter", 10, { ms: 20 });
      const pill = await stage.enqueue("poison", { how });
      await stage.enqueueMany("counter", 30, { ms: 20 });

      // A supervisor: whenever the worker is gone, the next one starts.
      const current = () => stage.children.at(-1);
      stage.spawn({ ...SHORT.work, concurrency: 5 }, SHORT.open);
      await eventually(
        () => `the pill is dead (${stage.children.length} workers so far; ${current()?.describe()})`,
        async () => {
          if (current()?.exit !== undefined) stage.spawn({ ...SHORT.work, concurrency: 5 }, SHORT.open);
          return (await pill.get()).state === "dead";
        },
        90_000,
      );
      await current()?.ready();
      await stage.drained();

      expect(await pill.get()).toMatchObject({ state: "dead", crashes: 3, failure: { kind: "poison" } });
      expect((await pill.history()).map(({ outcome }) => outcome)).toEqual(["crashed", "crashed", "crashed"]);
      expect(await stage.pawl.counts()).toMatchObject({ succeeded: 40, dead: 1 });
      expect(
        stage.sink.of(pill.id, "start").every(({ attempt }) => attempt === 1),
        "no attempt was spent",
      ).toBe(true);
      await stage.check();
    }, 150_000);
  }
});
