import type { ScheduleOptions } from "../../packages/pawl/src/index.js";
import { eventually } from "../support/eventually.js";
import type { ProcessFixture } from "../support/fixtures/process-fixture.js";

const job = { maxCrashes: 1_000 } as const;

/** Fast ones, of every policy. What runs long enough is met by the next tick. */
const SCHEDULES: Readonly<Record<string, { readonly task: string; readonly options: ScheduleOptions }>> = {
  every: { task: "quick", options: { every: "1s", overlap: "allow", missed: { policy: "all", window: "1h", max: 1_000, pace: 0 }, job } },
  latest: { task: "slow", options: { every: "1s", input: { ms: 300 }, missed: { tolerance: "1s" }, job } },
  punctual: { task: "quick", options: { every: "1s", overlap: "allow", missed: { policy: "skip", tolerance: "500ms" }, job } },
  patient: { task: "slow", options: { every: "2s", input: { ms: 2_500 }, overlap: "wait", job } },
  impatient: { task: "slow", options: { every: "3s", input: { ms: 4_000 }, overlap: "cancel", job } },
};

export async function startSchedules(fixture: ProcessFixture): Promise<void> {
  for (const [name, { task, options }] of Object.entries(SCHEDULES)) await fixture.pawl.schedules.put(name, task, options);
}

/** Once what was missed is made up for. Its jobs count as asked for from here on. */
export async function endSchedules(fixture: ProcessFixture): Promise<void> {
  const behind = "select count(*)::int from pawl.schedule where due_at < now() - interval '2 seconds' or next < now() - interval '5 seconds'";
  await eventually("the schedules are up to date", async () => (await fixture.one<number>(behind)) === 0, 120_000);
  for (const name of Object.keys(SCHEDULES)) await fixture.pawl.schedules.pause(name);
  fixture.acknowledged.push(...(await fixture.rows<{ job: string }>("select job::text from pawl.tick")).map(({ job: id }) => id));
}

interface Account {
  readonly name: string;
  readonly fired: number;
  /** ticks that have a job or a reason, and how many different ones */
  readonly accounted: number;
  readonly distinct: number;
  /** from the first after it was made up to the next one */
  readonly expected: number;
}

const ACCOUNTS = `
  with entry as (
    select t.schedule, t.at, true as fired from pawl.tick t where t.way <> 'triggered'
    union all select g.schedule, at, false from pawl.tick_gap g join pawl.schedule s on s.id = g.schedule
      cross join generate_series(g.from_at, g.to_at, (s.definition->'rule'->>'every')::int * interval '1 millisecond') as at
  )
  select s.name, count(*) filter (where fired)::int as fired, count(*)::int as accounted, count(distinct e.at)::int as distinct,
    ceil(extract(epoch from s.next) * 1000 / every)::int - floor(extract(epoch from s.created_at) * 1000 / every)::int - 1 as expected
  from pawl.schedule s cross join lateral (select (s.definition->'rule'->>'every')::int as every) r join entry e on e.schedule = s.id
  group by s.id, r.every order by s.name`;

/** Every tick has exactly one job, or one recorded reason why it has none (D2). Answers what to print. */
export async function checkTicks(fixture: ProcessFixture): Promise<string> {
  const accounts = await fixture.rows<Account>(ACCOUNTS);
  const wrong = accounts.filter(({ accounted, distinct, expected }) => accounted !== expected || distinct !== expected);
  if (accounts.length !== Object.keys(SCHEDULES).length || wrong.length > 0)
    throw new Error(`D2 ticks that are not accounted for: ${JSON.stringify(accounts)}`);
  return accounts.map(({ name, fired, accounted }) => `${name} ${fired} of ${accounted}`).join(", ");
}
