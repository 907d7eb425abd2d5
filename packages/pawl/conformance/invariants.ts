import { expect } from "vitest";
import type { JobId } from "../src/core/jobs/id.js";
import { type AttemptRecord, isFinished, JOB_STATES, type JobRecord, type JobState } from "../src/core/jobs/job.js";
import { compareLanes, laneKey } from "../src/core/jobs/lane.js";
import { isSuspect } from "../src/core/jobs/outcome.js";
import type { Store } from "../src/store/port/index.js";
import type { WholeJob, WholePage } from "../src/store/port/jobs/jobs.js";

/** What must hold between any two verbs, seen through the port alone. */
export async function checkInvariants(store: Store): Promise<void> {
  const jobs = await everyJob(store);
  await checkLists(store, jobs);
  await checkCounts(store, jobs);
  await checkLanes(store, jobs);
  for (const job of jobs) checkFields(job);
  const whole = await everyWhole(store);
  expect(
    [...whole.values()].map(({ job }) => job),
    "jobs are told alike with their histories and without",
  ).toEqual(jobs);
  // Nothing changes any more, so what is asked may be asked at once.
  await Promise.all(
    sample(jobs).map(async (job) => {
      const [got, history, logs] = await Promise.all([
        store.jobs.get("everyone", job.id),
        store.jobs.history("everyone", job.id),
        store.jobs.logs("everyone", job.id),
      ]);
      expect(got).toEqual(job);
      expect(whole.get(job.id), "all of a job is told alike at once and in parts").toEqual({ job, history, logs });
      checkHistory(job, history);
    }),
  );
  expect((await store.duties.poll()).due.get("reap") !== undefined, "there is a lease while jobs run, and only then").toBe(
    jobs.some(({ state }) => state === "running"),
  );
}

/** All of a few, some of many: each takes questions of its own. */
function sample(jobs: readonly JobRecord[]): readonly JobRecord[] {
  const step = Math.ceil(jobs.length / 40);
  return jobs.filter((_, n) => n % step === 0);
}

export async function everyJob(store: Store, pageSize = 100): Promise<readonly JobRecord[]> {
  const jobs: JobRecord[] = [];
  let page = await store.jobs.list("everyone", {}, { limit: pageSize });
  jobs.push(...page.jobs);
  while (page.next !== undefined) {
    page = await store.jobs.list("everyone", {}, { limit: pageSize, after: page.next });
    jobs.push(...page.jobs);
  }
  return jobs;
}

async function everyWhole(store: Store): Promise<ReadonlyMap<JobId, WholeJob>> {
  const jobs: WholeJob[] = [];
  let after: JobId | undefined;
  do {
    const page: WholePage = await store.jobs.whole("everyone", { limit: 100, ...(after === undefined ? {} : { after }) });
    jobs.push(...page.jobs);
    after = page.next;
  } while (after !== undefined);
  return new Map(jobs.map((one) => [one.job.id, one]));
}

async function checkLists(store: Store, jobs: readonly JobRecord[]): Promise<void> {
  const ids = jobs.map(({ id }) => id);
  expect(ids, "every job once, newest first").toEqual([...new Set(ids)].sort().reverse());
  await Promise.all(
    JOB_STATES.map(async (state) => {
      const { jobs: listed } = await store.jobs.list("everyone", { state }, { limit: jobs.length + 1 });
      expect(listed, `the list of ${state} jobs`).toEqual(jobs.filter((job) => job.state === state));
    }),
  );
}

async function checkCounts(store: Store, jobs: readonly JobRecord[]): Promise<void> {
  const expected = new Map<string, Record<JobState, number>>();
  for (const { lane, state } of jobs) {
    const key = JSON.stringify([lane.queue, lane.task]);
    const counts = expected.get(key) ?? (Object.fromEntries(JOB_STATES.map((name) => [name, 0])) as Record<JobState, number>);
    counts[state] += 1;
    expected.set(key, counts);
  }
  const rows = await store.records.counts();
  const seen = new Map(rows.map(({ queue, task, counts }) => [JSON.stringify([queue, task]), counts]));
  expect(seen, "counts say what lists say").toEqual(expected);
  expect(rows.length, "one row per queue and task").toBe(seen.size);
}

async function checkLanes(store: Store, jobs: readonly JobRecord[]): Promise<void> {
  const paused = await store.lanes.paused();
  const stopped = (kind: "queue" | "task" | "tenant", name: string) => paused.some((one) => one.kind === kind && one.name === name);
  const ready = jobs.filter(
    ({ state, lane }) => state === "ready" && !stopped("queue", lane.queue) && !stopped("task", lane.task) && !stopped("tenant", lane.tenant),
  );
  const lanes = new Map(ready.filter(({ crashes }) => !isSuspect(crashes)).map(({ lane }) => [laneKey(lane), lane]));
  const live = await store.lanes.live(undefined, [...new Set(jobs.map(({ lane }) => lane.task))]);
  expect([...live.lanes].sort(compareLanes), "live lanes are those with ready jobs").toEqual([...lanes.values()].sort(compareLanes));
  expect(live.suspects).toBe(ready.some(({ crashes }) => isSuspect(crashes)));
}

function checkFields(job: JobRecord): void {
  const { state } = job;
  const has = (field: keyof JobRecord) => job[field] !== undefined;
  expect(has("finishedAt"), `${state} has an end`).toBe(isFinished(state));
  expect(has("parkedFor"), `${state} has a park reason`).toBe(state === "parked");
  expect(has("waitsFor"), `${state} has parents`).toBe(state === "blocked");
  if (state === "blocked") expect(job.waitsFor).not.toEqual([]);
  if (state === "scheduled") expect(has("runAt"), "scheduled has a time").toBe(true);
  else if (state !== "parked") expect(has("runAt"), `${state} has no time`).toBe(false);
  if (has("output")) expect(state).toBe("succeeded");
  if (state === "dead") expect(has("failure"), "dead has a failure").toBe(true);
  if (has("intent")) expect(["running", "blocked"]).toContain(state);
}

function checkHistory(job: JobRecord, history: readonly AttemptRecord[]): void {
  const numbers = history.map(({ lease }) => BigInt(lease));
  expect(numbers, "history is in the order of lease numbers").toEqual([...numbers].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
  expect(new Set(numbers).size, "one line per lease").toBe(numbers.length);
  for (const line of history) expect(line.job).toBe(job.id);

  const last = history.at(-1);
  if (isFinished(job.state)) {
    expect(last?.next, "the last line says where the job went").toBe(job.state);
    expect(last?.finishedAt).toBe(job.finishedAt);
  }
  expect(job.failure, "the failure is the last line's").toEqual(last?.failure);

  const since = history.slice(history.findLastIndex(({ outcome }) => outcome === "redriven") + 1);
  const spending = since.filter(({ outcome, worker }) => worker !== undefined && (outcome === "succeeded" || outcome === "failed"));
  expect(job.attempts, "attempts spent are those in the history").toBe(spending.length);
  expect(job.crashes, "crashes are those in the history").toBe(since.filter(({ outcome }) => outcome === "crashed").length);
}
