import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const source = (path: string) => fileURLToPath(new URL(`./packages/pawl/src/${path}`, import.meta.url));

/** What both projects share: tests run from source, each file in a process of its own. */
const shared = {
  resolve: {
    alias: [
      { find: /^pawl$/, replacement: source("index.ts") },
      { find: /^pawl\/testing$/, replacement: source("testing/index.ts") },
    ],
  },
  // `await using` is newer than Node 20.
  oxc: { target: "es2022" },
};

/** Tests of real processes in real time. */
const REAL_TIME = [
  "test/recovery/**/*.test.ts",
  "test/sharing/**/*.test.ts",
  "test/limits/**/*.test.ts",
  "test/capacity/**/*.test.ts",
  "test/engine/**/*.test.ts",
  "test/telemetry/**/*.test.ts",
  "test/demo*.test.ts",
];

/** Tens of seconds each: begun last, one core would finish them alone. Vitest goes by what it measured last time, or by size. */
const LONG = [
  "test/conformance/",
  "test/races/bundles.",
  "test/races/leases.",
  "test/races/limits.",
  "test/races/prune.",
  "test/races/dependencies.",
  "embedded/embedded.test.ts",
  "drivers/pglite.test.ts",
  "test/dist.",
  "test/recovery/connections.",
  "test/sharing/",
  "test/demo.",
  "test/recovery/embedded.",
  "test/recovery/time.",
  "test/recovery/worker-frozen.",
  "test/recovery/worker-killed.",
  "test/recovery/poison.",
  "test/recovery/schedules.",
  "test/recovery/database-lost.",
  "test/recovery/outage.",
  "test/recovery/prune-killed.",
  "test/recovery/stranded.",
  "test/capacity/breakers.",
  "test/engine/backpressure.",
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => LONG.findIndex((name) => moduleId.includes(name)) >>> 0; // -1 is last
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}

/** Upper bounds, for a test that would never end: a busy machine must not reach them. */
const timing = { pool: "forks", testTimeout: 90_000, hookTimeout: 120_000 } as const;

export default defineConfig({
  test: {
    // Only here, not in the projects: one set of servers for the whole run.
    globalSetup: "./test/support/global-setup.ts",
    // Tests wait for databases more than they compute, but some measure time: no more of them than cores.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    projects: [
      { ...shared, test: { ...timing, name: "unit", include: ["packages/*/src/**/*.test.ts", "bench/{report,harness,child,scenarios}/*.test.ts"] } },
      { ...shared, test: { ...timing, name: "integration", include: ["test/**/*.test.ts"], exclude: REAL_TIME } },
      {
        ...shared,
        test: {
          ...timing,
          name: "recovery",
          include: REAL_TIME,
          // After the others: they start and kill processes of their own, and hold them to leases and time-outs of
          // seconds, which a machine busy with other tests cannot keep. They mostly wait, so more of them share the
          // time than there are cores.
          sequence: { groupOrder: 1 },
          maxWorkers: 3,
          maxConcurrency: 3,
          testTimeout: 300_000,
        },
      },
    ],
  },
});
