import { expect, test } from "vitest";
import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { DAY, KILLED, MINUTE, type World } from "../../packages/pawl/conformance/world.js";
import type { ExportedJob } from "../../packages/pawl/src/store/port/duties/duties.js";
import { barrier } from "../support/fixtures/memory-fixture.js";
import { SimulatedProcesses } from "../support/processes/simulated-processes.js";
import { describeOn, type ServerName } from "../support/servers/servers.js";

const KEEP = { finished: 30 * DAY, dead: 90 * DAY, limit: 2 };
/** The month in which every test begins is past its time. */
const SPRING = 55 * DAY;

async function finishedJobs(fixture: World, count: number): Promise<readonly string[]> {
  const ids = [];
  for (let n = 0; n < count; n++) {
    const id = await fixture.add();
    await fixture.run(id);
    ids.push(id);
  }
  return ids;
}
/** A prune whose export waits before its second batch. */
function pruneThatStops(
  fixture: World,
  exported: string[],
): { readonly stopped: Promise<void>; goOn(): void; readonly report: Promise<Readonly<Record<string, number>>> } {
  const stopped = barrier();
  const released = barrier();
  let batches = 0;
  const exportFinished = async (batch: readonly ExportedJob[]) => {
    if (++batches === 2) {
      stopped.open();
      await released.opened;
    }
    exported.push(...batch.map(({ job }) => job.id));
  };
  return { stopped: stopped.opened, goOn: () => released.open(), report: dutiesOf(fixture.store).prune({ ...KEEP, exportFinished }) };
}
const exporting = (exported: string[]) => ({
  ...KEEP,
  exportFinished: async (batch: readonly ExportedJob[]) => void exported.push(...batch.map(({ job }) => job.id)),
});

for (const server of ["embedded18", "pgbouncer"] as const satisfies readonly ServerName[]) {
  describeOn(server, () => {
    test("while one process exports, another that prunes exports nothing and lets go of nothing", async () => {
      await using processes = await SimulatedProcesses.open(server);
      const { clock } = processes;
      const [one, other] = [processes.start(), processes.start()];
      const ids = await finishedJobs(one, 6);
      clock.advance(SPRING);
      const exported: string[] = [];
      const slow = pruneThatStops(one, exported);
      await slow.stopped;
      expect(await dutiesOf(other.store).prune(exporting(exported))).toMatchObject({ dropped: 0, droppedPartitions: 0 });
      expect(await other.state(ids[0] as never)).toBe("succeeded");
      slow.goOn();
      expect(await slow.report).toMatchObject({ dropped: 6 });
      expect(exported.sort(), "each of them once").toEqual([...ids].sort());
    });

    test("one that vanished while it exported is followed after a minute, from where it was", async () => {
      await using processes = await SimulatedProcesses.open(server);
      const { clock } = processes;
      const [one, other] = [processes.start(), processes.start()];
      const ids = await finishedJobs(one, 6);
      clock.advance(SPRING);
      const exported: string[] = [];
      const killed = pruneThatStops(one, exported);
      await killed.stopped;
      expect(await dutiesOf(other.store).prune(exporting(exported))).toMatchObject({ dropped: 0 });
      clock.advance(MINUTE);
      expect(await dutiesOf(other.store).prune(exporting(exported))).toMatchObject({ dropped: 6 });
      expect(exported.sort(), "each of them once").toEqual([...ids].sort());
      killed.goOn();
      expect(await killed.report, "should it come back").toMatchObject({ dropped: 0 });
    });

    test("one that stood still for longer than its time finds that it is another's turn, and lets go of nothing", async () => {
      await using processes = await SimulatedProcesses.open(server);
      const { clock } = processes;
      const [one, other] = [processes.start(), processes.start()];
      const old = await one.add();
      await one.run(old, KILLED);
      clock.advance(90 * DAY);
      const frozen = barrier();
      const exports = barrier();
      const report = dutiesOf(one.store).prune({
        ...KEEP,
        async exportFinished() {
          exports.open();
          await frozen.opened;
        },
      });
      await exports.opened;
      clock.advance(MINUTE);
      const holds = barrier();
      const done = barrier();
      const others = dutiesOf(other.store).prune({
        ...KEEP,
        async exportFinished() {
          holds.open();
          await done.opened;
        },
      });
      await holds.opened;
      frozen.open();
      expect(await report).toMatchObject({ dropped: 0 });
      expect(await one.state(old), "it is the other's to let go").toBe("dead");
      done.open();
      expect(await others).toMatchObject({ dropped: 1 });
    });

    test("an export that failed goes on with the batch that it failed at", async () => {
      await using processes = await SimulatedProcesses.open(server);
      const { clock } = processes;
      const one = processes.start();
      const ids = await finishedJobs(one, 6);
      clock.advance(SPRING);
      const exported: string[] = [];
      const failing = {
        ...KEEP,
        async exportFinished(batch: readonly ExportedJob[]) {
          if (exported.length === 4) throw new Error("the archive is full");
          exported.push(...batch.map(({ job }) => job.id));
        },
      };
      await expect(dutiesOf(one.store).prune(failing)).rejects.toThrow("the archive is full");
      expect(await dutiesOf(one.store).prune(exporting(exported))).toMatchObject({ dropped: 6 });
      expect(exported).toEqual(ids);
    });
  });
}
