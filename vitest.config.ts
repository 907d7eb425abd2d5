import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** What all projects share: tests run from source. */
const shared = {
  resolve: {
    alias: [
      { find: /^pawl$/, replacement: here("packages/pawl/src/index.ts") },
      { find: /^pawl\/(worker|adapters|testing|service|store)$/, replacement: here("packages/pawl/src/$1.ts") },
      { find: /^(\.\/|(\.\.\/)+)runtime\/io\/thread\.js$/, replacement: here("test/support/processes/thread.ts") },
    ],
  },
  // `await using` is newer than Node 20.
  oxc: { target: "es2022" },
};

/** Tests of real processes in real time: they mostly wait. */
const REAL_TIME = [
  "test/{recovery,telemetry,service,readme}/**/*.test.ts",
  // Rooms whose tests are of several processes.
  "test/{jobs,enqueue,claim,schedules,limits,sharing,duties}/**/*.test.ts",
  "test/observe/estimated-start.test.ts",
  "test/cli/{closed-pipe,doctor,targets,top}.test.ts",
];

/**
 * What `npm test` leaves to `npm run test:rest`: what repeats elsewhere something that it has tested, and what must be
 * watched for long, or in crowds. CI runs both.
 */
const REST = [
  // The same suites again, on another server: `npm test` runs the core of the conformance suite on them.
  "test/conformance/{debian15,pgbouncer,pglite,tenant-role}.test.ts",
  "test/races/debian15.test.ts",
  "test/cli/pglite.test.ts",
  "test/store/pglite-one-connection.test.ts",
  // Shares, estimates, backlogs and leaks: numbers that only many jobs and much time show.
  "test/sharing/{tenants,priorities,workers}.test.ts",
  "test/limits/blocked-key.test.ts",
  "test/store/steady-cost.test.ts",
  "test/observe/estimated-start.test.ts",
  "test/recovery/{soak,stranded}.test.ts",
  // Every moment at which a process can be killed; the default run tries one.
  "test/recovery/worker-killed-at.test.ts",
  "test/access/through-pgbouncer.test.ts",
  // Tests of packages, releases, backups, clones, terminals and a real Prometheus: made of the sources, or around them.
  "test/packages/*.test.ts",
  "test/examples.test.ts",
  "test/bench.test.ts",
  "test/recovery/backup.test.ts",
  "test/readme/*.test.ts",
  "test/{demo,demo-terminal}.test.ts",
  "test/telemetry/{outage,prometheus}.test.ts",
];

/**
 * Looked at once by `npm test`, and again by `npm run test:rest`: on the other servers, at the other moments of a kill, with
 * more of what chance finds (`test/support/again.ts`).
 */
const AGAIN = [
  "test/access/{database-roles,roles-script,tenant-role-plans,purge-killed}.test.ts",
  "test/remote/stores.test.ts",
  "test/observe/explain-reasons.test.ts",
  "test/http/{events-cluster,fuzz}.test.ts",
  "test/service/cluster.test.ts",
  "test/store/listing.test.ts",
  "test/recovery/{migration,prune}-killed.test.ts",
  "test/conformance/model.test.ts",
  "test/races/{random,serializable}.test.ts",
];

/** Tens of seconds each: begun last, one core would finish them alone. Vitest goes by what it measured last time, or by size. */
const LONG = [
  "test/conformance/pglite.",
  "test/conformance/core.",
  "embedded/embedded.test.ts",
  "drivers/pglite.test.ts",
  "test/conformance/",
  "test/races/debian15.",
  "test/races/dependencies.",
  "test/races/prune.",
  "test/races/limits.",
  "test/races/history-rows.",
  "test/races/intents.",
  "test/remote/stores.",
  "test/recovery/connections.",
  "test/sharing/",
  "test/recovery/worker-frozen.",
  "test/demo.",
  "test/telemetry/prometheus.",
  "test/telemetry/outage.",
  "test/recovery/schedules.",
  "test/recovery/duties.",
  "test/limits/breakers.",
  "test/recovery/time.",
  "test/recovery/outage.",
  "test/enqueue/ingest-rate.",
  "test/cli/doctor.",
  "test/limits/never-exceeded.",
  "test/cli/targets.",
  "test/service/cluster.",
  "test/recovery/worker-killed.",
  "test/recovery/database-lost.",
  "test/recovery/",
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => LONG.findIndex((name) => moduleId.includes(name)) >>> 0; // -1 is last
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}

/** Files share a process: loading anew for each of them what it tests would be a third of their time. */
const together = { isolate: false } as const;

/** Takes something out of a module before it is loaded, so its process is its own. */
const APART = ["test/races/unique-keys-single-look.test.ts"];

/** Upper bounds, for a test that would never end: a busy machine must not reach them. */
const timing = { pool: "forks", testTimeout: 90_000, hookTimeout: 120_000 } as const;

/**
 * After the others: they start and kill processes of their own, and hold them to leases and time-outs of seconds, which a
 * machine busy with other tests cannot keep. They mostly wait, so more of them share the time than there are cores.
 */
const patient = { sequence: { groupOrder: 1 }, maxWorkers: 4, maxConcurrency: 3, testTimeout: 300_000 } as const;

export default defineConfig({
  test: {
    // Only here, not in the projects: one set of servers for the whole run.
    globalSetup: "./test/support/servers/global-setup.ts",
    // Tests wait for databases, and for each other's locks, as long as they compute: two of them leave cores idle.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        ...shared,
        test: {
          ...timing,
          name: "unit",
          ...together,
          include: ["packages/*/src/**/*.test.ts", "bench/{report,harness,child,scenarios}/*.test.ts", "scripts/*.test.ts"],
        },
      },
      {
        ...shared,
        test: { ...timing, ...together, name: "integration", include: ["test/**/*.test.ts"], exclude: [...REAL_TIME, ...REST, ...APART] },
      },
      { ...shared, test: { ...timing, name: "apart", include: APART } },
      { ...shared, test: { ...timing, ...patient, name: "recovery", include: REAL_TIME, exclude: REST } },
      { ...shared, test: { ...timing, ...patient, name: "rest", include: [...REST, ...AGAIN], provide: { again: true } } },
    ],
  },
});
