import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dutiesOf } from "../../packages/pawl/conformance/duties.js";
import { checkInvariants } from "../../packages/pawl/conformance/index.js";
import { DAY, KILLED, MINUTE } from "../../packages/pawl/conformance/world.js";
import { onceOrAgain } from "../support/again.js";
import { type KillPoint, killedAt } from "../support/processes/maintenance-process.js";
import { SimulatedProcesses } from "../support/processes/simulated-processes.js";
import { childScript } from "../support/processes/worker-process.js";
import { violations } from "../support/races/violations.js";
import { describeOn } from "../support/servers/servers.js";

const RULES = { finished: 30 * DAY, dead: 90 * DAY, limit: 2 };
/** The month in which every test begins is past its time. */
const SPRING = 55 * DAY;
const FINISHED = 6;

interface Point extends KillPoint {
  readonly moment: string;
  /** jobs whose batch was in the archive, and not noted yet */
  readonly twice?: number;
}

const POINTS: readonly Point[] = [
  { moment: "when only the floor is raised", at: /pawl_raise_floor/, when: "after" },
  { moment: "while it moves what is kept", at: /pawl_take_out_of_history/, when: "after" },
  { moment: "between two batches of the export", at: /pawl_export_2026_01/, nth: 2, when: "before" },
  { moment: "with a batch in the archive that is not noted", at: /pawl_renew_duty/, nth: 2, when: "before", twice: 2 },
  { moment: "when all is exported", at: /lock table/, when: "before" },
  { moment: "with some tables detached", at: /detach partition pawl\.history_2026_01/, when: "after" },
  { moment: "when the tables are dropped, before the commit", at: /drop table pawl\.job_2026_01/, when: "after" },
  { moment: "when it has committed, before it knows", after: /drop table pawl\.job_2026_01/, at: /commit\0/, when: "after" },
];

describeOn("embedded18", () => {
  describe("a process that prunes, killed with -9", () => {
    let folder: string;
    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), "pawl-test-"));
      await childScript("maintenance-child");
    });
    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    for (const [index, { moment, twice = 0, ...point }] of onceOrAgain([...POINTS.entries()])) {
      it(`${moment}: another one finishes it, and every job is exported before it goes`, async () => {
        await using processes = await SimulatedProcesses.open();
        const { clock, control, database } = processes;
        const world = processes.start();
        const finished: string[] = [];
        for (let n = 0; n < FINISHED; n++) {
          const id = await world.add();
          await world.run(id);
          finished.push(id);
        }
        const dead = await world.add();
        await world.run(dead, KILLED);
        const waits = await world.add();
        clock.advance(SPRING);

        const archive = join(folder, String(index));
        await killedAt(point, database, { prune: { ...RULES, now: clock.now(), archive } });
        const before = exported(archive);
        expect(await violations(control, "now"), "nothing is half done").toEqual([]);

        const again: string[] = [];
        const heir = () =>
          dutiesOf(world.store).prune({ ...RULES, exportFinished: async (batch) => void again.push(...batch.map(({ job }) => job.id)) });
        await heir();
        expect(again, "it is the other's for a minute").toEqual([]);
        clock.advance(MINUTE);
        await heir();

        expect([...new Set([...before, ...again])].sort(), "all of them are in the archive").toEqual([...finished].sort());
        expect(before.length + again.length - FINISHED, "seen twice").toBe(twice);
        expect(await processes.column("select relname from pg_class where relname ~ '_2026_01'"), "the month is gone").toEqual([]);
        for (const id of finished) expect(await world.state(id as typeof dead)).toBe("deleted");
        expect(await world.state(dead)).toBe("dead");
        expect(await world.store.jobs.history("everyone", dead)).toHaveLength(1);
        expect(await world.state(waits)).toBe("ready");
        await world.run(waits);
        await checkInvariants(world.store);
        expect(await violations(control, "quiet")).toEqual([]);
      });
    }
  });
});

function exported(archive: string): readonly string[] {
  return existsSync(archive) ? readFileSync(archive, "utf8").trim().split("\n") : [];
}
