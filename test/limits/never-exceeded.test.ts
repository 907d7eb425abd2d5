import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.js";
import { freshFixture } from "../support/fixtures/fresh-fixture.js";
import { type ProcessFixture, SHORT_LEASES } from "../support/fixtures/process-fixture.js";
import { type Interval, largestBurst, maxOverlap } from "../support/overlap.js";
import { REST } from "../support/processes/worker-tasks.js";
import { describeOn } from "../support/servers/servers.js";

interface HeldSlot extends Interval {
  readonly job: string;
  readonly account: string;
  readonly no: number;
}

/** When somebody held which job, by its history: attempts from their start on, claims lost to a crash from the claim on. */
function intervals(fixture: ProcessFixture): Promise<readonly HeldSlot[]> {
  return fixture.rows<HeldSlot>(
    `select a.job::text, j.input->>'account' as account, (j.input->>'no')::int as no,
       extract(epoch from a.started_at)::float8 * 1000 as "from", extract(epoch from a.finished_at)::float8 * 1000 as "to"
     from pawl.any_attempt a join pawl.any_job j on j.id = a.job order by a.started_at`,
  );
}

async function left(fixture: ProcessFixture): Promise<object> {
  const [row] = await fixture.rows<object>(
    `select (select count(*) from pawl.slot)::int as slots, (select count(*) from pawl.job_limits)::int as "jobLimits", (select count(*) from pawl.parked)::int as parked`,
  );
  return row as object;
}

const ACCOUNTS = ["ann", "ben", "cat", "dan"];

/** Of all accounts in turn, and of unequal length. */
async function enqueue(fixture: ProcessFixture, task: string, count: number): Promise<void> {
  const inputs = Array.from({ length: count }, (_, no) => ({ account: ACCOUNTS[no % 4], no, ms: 5 + ((no * 37) % 60) }));
  fixture.acknowledged.push(...(await fixture.pawl.enqueueMany(task, inputs)).map(({ id }) => id));
}

/** Four processes, two of which are killed while they work. */
async function throughCrashes(fixture: ProcessFixture, under: number): Promise<void> {
  const workers = await Promise.all(Array.from({ length: 4 }, () => fixture.worker({ ...SHORT_LEASES.work, concurrency: 10 }, SHORT_LEASES.open)));
  for (const [index, victim] of workers.slice(0, 2).entries()) {
    await eventually("work is under way", () => fixture.handlerLog.lines("end").length >= under * (index + 1));
    await victim.kill();
  }
  await fixture.drained();
}

describeOn("embedded18", () => {
  describe("limits on keys, with four worker processes of which two are killed", () => {
    it("no instant has more than three jobs of an account, and no slot is left", async () => {
      await using fixture = await freshFixture();
      await enqueue(fixture, "limited", 200);
      await throughCrashes(fixture, 40);
      const all = await intervals(fixture);
      for (const account of ACCOUNTS) {
        const peak = maxOverlap(all.filter((one) => one.account === account));
        expect(peak, account).toBeLessThanOrEqual(3);
        expect(peak, `${account} is limited to what it may, not to less`).toBe(3);
      }
      expect(await left(fixture)).toEqual({ slots: 0, jobLimits: 0, parked: 0 });
      expect(await fixture.pawl.counts()).toMatchObject({ succeeded: 200, parked: 0, ready: 0, running: 0 });
      await fixture.check();
    }, 120_000);

    it("in no stretch of time more jobs of an account begin than its rate and two bursts, and no token's note is left", async () => {
      await using fixture = await freshFixture();
      await enqueue(fixture, "paced", 200);
      await throughCrashes(fixture, 40);
      const all = await intervals(fixture);
      for (const account of ACCOUNTS) {
        const burst = largestBurst(
          all.filter((one) => one.account === account).map(({ from }) => from),
          20 / 1_000,
        );
        // Where no worker takes them for a while, a burst waits for one while the next is saved up.
        expect(burst, account).toBeLessThanOrEqual(2 * 4);
        expect(burst, `${account} may begin with a burst`).toBeGreaterThanOrEqual(3);
      }
      expect(await left(fixture)).toEqual({ slots: 0, jobLimits: 0, parked: 0 });
      expect(await fixture.pawl.counts()).toMatchObject({ succeeded: 200, parked: 0, ready: 0, running: 0 });
      await fixture.check();
    }, 120_000);

    it("a key that was told to come back later rests in all of them, and no other does", async () => {
      await using fixture = await freshFixture();
      const down = join(fixture.folder, "down");
      writeFileSync(down, "");
      const busy = new Set(await fixture.enqueueMany("polite", 30, { account: "busy", ms: 15, down }));
      for (const [no, account] of ACCOUNTS.entries()) await fixture.enqueueMany("polite", 60, { account, ms: 5 + no * 25 });
      const workers = await Promise.all(
        Array.from({ length: 4 }, () => fixture.worker({ ...SHORT_LEASES.work, concurrency: 10 }, SHORT_LEASES.open)),
      );
      const calls = () => fixture.handlerLog.lines("start").filter(({ job }) => busy.has(job));
      // Told, and heard: for those who are killed before they could say so, nobody rests.
      await eventually("it was told so twice, and rests", async () => {
        const again = calls()[4];
        if (again === undefined) return false;
        const { items: limits } = await fixture.pawl.limits.list();
        return limits.some(({ key, pausedUntil }) => key === "busy" && (pausedUntil?.getTime() ?? 0) > again.at + REST / 2);
      });
      for (const victim of workers.slice(0, 2)) await victim.kill();
      await eventually("the others are done", async () => (await fixture.pawl.counts()).succeeded >= 4 * 60);
      const at = calls().map((call) => call.at);
      rmSync(down);
      await fixture.drained();
      // Those that were let in together are told together: four, and then nobody until it is over.
      const together = at.map((first) => at.filter((other) => other >= first && other < first + REST - 500).length);
      expect(Math.max(...together), `calls: ${at.map((one) => one - (at[0] as number))}`).toBeLessThanOrEqual(4);
      expect(await left(fixture)).toEqual({ slots: 0, jobLimits: 0, parked: 0 });
      expect(await fixture.pawl.counts()).toMatchObject({ succeeded: 270, dead: 0 });
      await fixture.check();
    }, 120_000);

    it("a serial key runs one at a time, in the order of the enqueues, through retries and crashes", async () => {
      await using fixture = await freshFixture();
      await enqueue(fixture, "ordered", 60);
      await throughCrashes(fixture, 12);
      const all = await intervals(fixture);
      for (const account of ACCOUNTS) {
        const own = all.filter((one) => one.account === account);
        expect(maxOverlap(own), account).toBe(1);
        const order = own.map(({ no }) => no);
        expect(order, `${account}: nobody before the one before it is done`).toEqual([...order].sort((a, b) => a - b));
      }
      expect(await left(fixture)).toEqual({ slots: 0, jobLimits: 0, parked: 0 });
      await fixture.check();
    }, 120_000);
  });
});
