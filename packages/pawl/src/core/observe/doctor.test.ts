import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { SlotUse, TaskUse } from "../limits/slot-use.js";
import { VERSION } from "../values/version.js";
import { CHECKS, type Check, diagnose, type StoreSituation } from "./doctor.js";

const MINUTE = 60_000;
const NOW = Date.UTC(2026, 0, 15);
const used = (task: TaskUse, more: Partial<SlotUse> = {}): SlotUse => ({
  total: 4,
  inUse: 2,
  overrun: task.overrun ?? 0,
  tasks: [task],
  ends: [],
  ...more,
});
const HEALTHY: StoreSituation = {
  now: NOW,
  pins: [],
  tables: [{ table: "pawl.ready", live: 1_000_000, dead: 40_000, bytes: 1e8 }],
  missingMonths: [],
  expired: { leases: 0, jobs: 0, longest: 0 },
  hears: true,
  ahead: 20,
  overdue: 0,
  unserved: [],
  workers: [{ name: "ana", version: VERSION }],
  slots: [{ worker: "ana", use: used({ task: "mail", running: 2, since: NOW - 5_000, took: 900, longest: 2_000 }) }],
  version: VERSION,
};

const session = { kind: "transaction", name: "4711", application: "psql", holds: true } as const;

const SICK: Readonly<Record<Check, readonly [changes: Partial<StoreSituation>, says: RegExp]>> = {
  clock: [{ ahead: -MINUTE }, /clock is 60 s behind the store's/],
  horizon: [{ pins: [{ ...session, openFor: 5 * MINUTE }] }, /session 4711 \(psql\) holds back the clearing of old rows for 5 min/],
  idle_transaction: [
    { pins: [{ ...session, holds: false, openFor: 5 * MINUTE, idleFor: 3 * MINUTE }] },
    /session 4711 \(psql\) has been idle inside a transaction for 3 min/,
  ],
  bloat: [
    { tables: [{ table: "pawl.ready", live: 10, dead: 60_000, bytes: 9e6 }] },
    /table pawl.ready holds 60,000 dead rows beside 10 live ones, in 9 MB/,
  ],
  partitions: [{ missingMonths: ["2026_02"] }, /no partition for 2026_02/],
  leases: [{ expired: { leases: 1, jobs: 2, longest: 5 * MINUTE } }, /1 lease with 2 jobs ended up to 5 min ago/],
  maintenance: [{ overdue: 3 * MINUTE }, /overdue by 3 min: nobody does maintenance/],
  versions: [{ workers: [{ name: "ana", version: "0.0.9" }, { name: "bob" }] }, /0\.0\.9 \(ana\), an older one \(bob\), \d.*\(this process\)/],
  wake_ups: [{ hears: false }, /LISTEN hears nothing/],
  unserved: [{ unserved: [{ lane: "task mail", why: "no worker is live" }] }, /task mail wait for nobody: no worker is live/],
  stuck: [
    { slots: [{ worker: "ana", use: used({ task: "mail", running: 0, since: NOW - 12 * MINUTE, overrun: 2, overdue: NOW - 7 * MINUTE }) }] },
    /at worker ana 2 handlers of task mail go on though their time is up, for 7 min by now/,
  ],
};

describe("a diagnosis", () => {
  test("finds nothing where all is well", () => {
    expect(diagnose(HEALTHY, MINUTE)).toEqual([]);
    expect(diagnose({ ...HEALTHY, workers: [] }, MINUTE)).toEqual([]);
  });

  test.each(CHECKS)("finds %s, and that alone, with its price and its cure", (check) => {
    const [changes, says] = SICK[check];
    const findings = diagnose({ ...HEALTHY, ...changes }, MINUTE);
    expect(findings.map((finding) => finding.check)).toEqual([check]);
    expect(findings[0]?.found).toMatch(says);
    expect(findings[0]?.costs).not.toBe("");
    expect(findings[0]?.mend).not.toBe("");
  });

  test("finds a handler that runs far longer than they do, and none that is only slow", () => {
    const found = (task: Omit<TaskUse, "task" | "running">, more: Partial<SlotUse> = {}) =>
      diagnose({ ...HEALTHY, slots: [{ worker: "ana", use: used({ task: "mail", running: 1, ...task }, more) }] }, MINUTE);
    expect(found({ since: NOW - 20 * MINUTE, took: 2_000, longest: 9_000 })).toMatchObject([
      {
        check: "stuck",
        level: "warning",
        found: "at worker ana a handler of task mail has been running for 20 min, where they take 2 s lately",
        costs: "it keeps its slot: 2 of 4 there are in use",
      },
    ]);
    expect(found({ since: NOW - 59_000, took: 2_000, longest: 9_000 }), "patience").toEqual([]);
    expect(found({ since: NOW - 20 * MINUTE, took: 3 * MINUTE, longest: 5 * MINUTE }), "they are slow").toEqual([]);
    expect(found({ since: NOW - 20 * MINUTE, took: 2_000, longest: 10 * MINUTE }), "some of them are").toEqual([]);
    expect(found({ since: NOW - 20 * MINUTE }), "none has ended yet").toEqual([]);
    expect(found({ since: NOW - 20 * MINUTE, overrun: 1, overdue: NOW - 30_000, took: 2_000, longest: 2_000 }), "its time is up just now").toEqual(
      [],
    );
    const stuck = found({ since: NOW - 20 * MINUTE, overrun: 1, overdue: NOW - 2 * MINUTE }, { stuck: true });
    expect(stuck).toMatchObject([
      { level: "critical", costs: "that worker takes nothing more", found: expect.stringContaining("1 handler of task mail goes on") },
    ]);
  });

  test("has patience", () => {
    const soon = {
      ...HEALTHY,
      pins: [
        { ...session, openFor: 59_999 },
        { ...session, holds: false, openFor: 59_999, idleFor: 59_999 },
      ],
      expired: { leases: 1, jobs: 1, longest: 59_999 },
      overdue: 59_999,
    };
    expect(diagnose(soon, MINUTE)).toEqual([]);
    expect(diagnose(soon, 59_999).map(({ check }) => check)).toEqual(["horizon", "idle_transaction", "leases", "maintenance"]);
  });

  test("tells slots and prepared transactions by what ends them", () => {
    const pins = [
      { kind: "slot", name: "copy", application: "", holds: true },
      { kind: "prepared", name: "tx1", application: "ana", holds: true, openFor: 5 * MINUTE },
      { ...session, openFor: 5 * MINUTE, holds: false },
    ] as const;
    expect(diagnose({ ...HEALTHY, pins }, MINUTE).map(({ mend }) => mend)).toEqual([
      "let its subscriber catch up, or drop it: select pg_drop_replication_slot('copy')",
      "commit prepared or rollback prepared 'tx1'",
    ]);
  });

  test("names a few workers of a version, and counts the others", () => {
    const workers = Array.from({ length: 5 }, (_, n) => ({ name: `w${n}`, version: "0.0.9" }));
    expect(diagnose({ ...HEALTHY, workers }, MINUTE)[0]?.found).toContain("0.0.9 (w0, w1, w2 and 2 more)");
  });
});

test("the version is that of the package", () => {
  const { version } = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as { version: string };
  expect(VERSION).toBe(version);
});
