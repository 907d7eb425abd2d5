import { describe } from "vitest";
import { apiKeyTests } from "./api-keys.js";
import { auditTests } from "./audit.js";
import { batchTests } from "./batches.js";
import { breakerTests } from "./breakers.js";
import { claimTests } from "./claim.js";
import { countTests } from "./counts.js";
import { deadTests } from "./dead.js";
import { debounceTests } from "./debounce.js";
import { dependencyTests } from "./dependencies.js";
import { enqueueTests } from "./enqueue.js";
import { eventTests } from "./events.js";
import { expireTests } from "./expire.js";
import { explainTests } from "./explain.js";
import { frontTests } from "./fronts.js";
import { ingestTests } from "./ingest.js";
import { intentTests } from "./intents.js";
import { laneTests } from "./lanes.js";
import { leaseTests } from "./leases.js";
import { limitTests } from "./limits.js";
import { limitListTests } from "./limits-list.js";
import { lostAnswerTests } from "./lost.js";
import { matrixTests } from "./matrix.js";
import { operatorTests } from "./operators.js";
import { pageTests } from "./pages.js";
import { policyTests } from "./policies.js";
import { protectionTests } from "./protection.js";
import { pruneTests } from "./prune.js";
import { recordTests } from "./records.js";
import { replyTests } from "./replies.js";
import { scheduleTests } from "./schedules.js";
import { scopeTests } from "./scope.js";
import { seriesTests } from "./series.js";
import { settleTests } from "./settle.js";
import { spreadTests } from "./spread.js";
import { type ConformanceOptions, type Test, testsFor } from "./suite.js";
import { suspectTests } from "./suspects.js";
import { targetTests } from "./targets.js";
import { taskTests } from "./tasks.js";
import { timeTests } from "./time.js";
import { uniqueTests } from "./unique.js";
import { workerTests } from "./workers.js";

export { checkInvariants } from "./invariants.js";
export type { ConformanceOptions } from "./suite.js";
export { TestClock, World } from "./world.js";

const TOPICS = {
  enqueue: enqueueTests,
  "batches under one request id": batchTests,
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
  "fronts of lanes": frontTests,
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
