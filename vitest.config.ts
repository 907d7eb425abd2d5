import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

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
const REAL_TIME = ["test/recovery/**/*.test.ts", "test/engine/**/*.test.ts", "test/demo*.test.ts"];

const timing = { pool: "forks", testTimeout: 30_000, hookTimeout: 60_000 } as const;

export default defineConfig({
  test: {
    // Only here, not in the projects: one set of servers for the whole run.
    globalSetup: "./test/support/global-setup.ts",
    // Tests wait for databases more than they compute, but some measure time: no more of them than cores.
    maxWorkers: 2,
    projects: [
      { ...shared, test: { ...timing, name: "unit", include: ["packages/*/src/**/*.test.ts", "bench/{report,harness,child,scenarios}/*.test.ts"] } },
      { ...shared, test: { ...timing, name: "integration", include: ["test/**/*.test.ts"], exclude: REAL_TIME } },
      {
        ...shared,
        test: {
          ...timing,
          name: "recovery",
          include: REAL_TIME,
          // After the others: they start and kill processes of their own, and hold them to leases and time-outs of a
          // second or two, which a machine busy with other tests cannot keep. They mostly wait, so two files share the
          // time, but no more tests at once than a core each can serve.
          sequence: { groupOrder: 1 },
          maxWorkers: 2,
          maxConcurrency: 3,
          // Another try, since a shared machine may stand still for longer than that at any moment.
          retry: 2,
        },
      },
    ],
  },
});
