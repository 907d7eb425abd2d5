import type { SystemAbout } from "../contract/system.js";
import type { SavedReport } from "./report.js";

/** A made-up report for the tests of the reporting; they change what they are about. */
export function sample(changes: Partial<SavedReport> = {}): SavedReport {
  return {
    scenario: "drain",
    measures: "no-op jobs through real handlers",
    results: [
      { system: "pawl", perSecond: 103_123 },
      { system: "pg-boss", perSecond: 28_000 },
    ],
    ratio: 3.683,
    parts: {},
    jobs: 100_000,
    runs: 3,
    systems: [about("pawl", "Pawl"), about("pg-boss", "pg-boss")],
    servers: { node: "v22.1.0, for everyone", postgres: "18.4, fsync on" },
    skipped: {},
    turns: [{ system: "pawl", perSecond: 103_123 }],
    took: { ms: 1_000 },
    date: "2026-11-15T12:34:56.000Z",
    machine: { cpu: "Abacus", cores: 2, memoryGB: 4, system: "Linux 6", fsyncMs: 0.2 },
    ...changes,
  };
}

export function about(name: string, label: string): SystemAbout {
  return { name, label, store: "postgres", version: "1.2.3", settings: "batches of 500", keepsHistory: true, delays: true };
}
