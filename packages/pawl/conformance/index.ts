import { describe } from "vitest";
import { apiKeyTests } from "./access/api-keys.js";
import { auditTests } from "./access/audit.js";
import { operatorTests } from "./access/operators.js";
import { protectionTests } from "./access/protection.js";
import { admittedSectionTests } from "./claim/admitted-section.js";
import { claimTests } from "./claim/claim.js";
import { intentTests } from "./claim/intents.js";
import { laneTests } from "./claim/lanes.js";
import { leaseTests } from "./claim/leases.js";
import { lostAnswerTests } from "./claim/lost.js";
import { settleTests } from "./claim/settle.js";
import { suspectTests } from "./claim/suspects.js";
import { workerTests } from "./claim/workers.js";
import { batchTests } from "./jobs/batches.js";
import { deadTests } from "./jobs/dead.js";
import { debounceTests } from "./jobs/debounce.js";
import { dependencyTests } from "./jobs/dependencies.js";
import { enqueueTests } from "./jobs/enqueue.js";
import { expireTests } from "./jobs/expire.js";
import { pageTests } from "./jobs/pages.js";
import { pruneTests } from "./jobs/prune.js";
import { replyTests } from "./jobs/replies.js";
import { targetTests } from "./jobs/targets.js";
import { taskTests } from "./jobs/tasks.js";
import { timeTests } from "./jobs/time.js";
import { uniqueTests } from "./jobs/unique.js";
import { breakerTests } from "./limits/breakers.js";
import { ingestTests } from "./limits/ingest.js";
import { limitTests } from "./limits/limits.js";
import { limitListTests } from "./limits/limits-list.js";
import { policyTests } from "./limits/policies.js";
import { matrixTests } from "./matrix.js";
import { countTests } from "./observe/counts.js";
import { eventTests } from "./observe/events.js";
import { explainTests } from "./observe/explain.js";
import { recordTests } from "./observe/records.js";
import { seriesTests } from "./observe/series.js";
import { scheduleTests } from "./schedules/schedules.js";
import { spreadTests } from "./schedules/spread.js";
import { scopeTests } from "./scope.js";
import { type ConformanceOptions, type Test, testsFor } from "./suite.js";

export { checkInvariants } from "./invariants.js";
export type { ConformanceOptions } from "./suite.js";
export { TestClock, World } from "./world.js";

const TOPICS = {
  enqueue: enqueueTests,
  "batches under one idempotency key": batchTests,
  "unique keys": uniqueTests,
  dependencies: dependencyTests,
  claim: claimTests,
  settle: settleTests,
  "renew and reap": leaseTests,
  suspects: suspectTests,
  "cancel and pause": intentTests,
  "promote and time": timeTests,
  expire: expireTests,
  operators: operatorTests,
  "every verb in every state": matrixTests,
  lanes: laneTests,
  "limits on keys": limitTests,
  "admitted sections of lanes": admittedSectionTests,
  "keys at their limit": limitListTests,
  "debounce and throttle": debounceTests,
  ingest: ingestTests,
  explain: explainTests,
  spread: spreadTests,
  tasks: taskTests,
  "policies and limits of lanes": policyTests,
  workers: workerTests,
  breakers: breakerTests,
  "dead jobs and checkups": deadTests,
  counts: countTests,
  series: seriesTests,
  events: eventTests,
  records: recordTests,
  schedules: scheduleTests,
  scope: scopeTests,
  pages: pageTests,
  "lost answers": lostAnswerTests,
  prune: pruneTests,
  targets: targetTests,
  "API keys": apiKeyTests,
  "the audit log": auditTests,
  "idempotent replies": replyTests,
  "data keys and purges": protectionTests,
} satisfies Readonly<Record<string, (test: Test) => void>>;

export type Topic = keyof typeof TOPICS;
const ALL = Object.keys(TOPICS) as readonly Topic[];

/** The contract of the port, as tests: one suite that every store passes. Of the topics asked for, or of all. */
export function storeConformance(options: ConformanceOptions, topics: readonly Topic[] = ALL): void {
  const test = testsFor(options);
  describe(`${options.name} store`, () => {
    for (const topic of topics) describe(topic, () => TOPICS[topic](test));
  });
}
