import { setTimeout as sleep } from "node:timers/promises";
import type { Child } from "../../contract/child.js";
import type { Curve, Figures, Scenario, Turn } from "../../contract/scenario.js";
import { partsOf, rounded } from "../../harness/figures.js";
import { type Case, caseRows, inCases } from "../cases.js";

const PROCESSES = 4;
const SLOTS = 10;
/** ms between one tenant's coming and the next one's, and of the time in which all are there */
const STEP = 2_000;
const TOGETHER = 10_000;
/** ms of one stop of the chart */
const BUCKET = 500;

/** They come one after the other, each with more work than there is time for. */
const TENANTS = [
  { name: "a, 20 ms, first", ms: 20 },
  { name: "b, 50 ms", ms: 50 },
  { name: "c, 5 ms", ms: 5 },
  { name: "d, 150 ms", ms: 150 },
] as const;

const SPAN = STEP * (TENANTS.length - 1) + TOGETHER;
const SLOT_MS = SPAN * PROCESSES * SLOTS;

/** Worker time by tenant, stop by stop, and the first stop at which all were there. */
interface TenantShares {
  readonly stops: readonly (readonly number[])[];
  readonly together: number;
}

export const fairness: Scenario = {
  name: "fairness",
  measures:
    "four processes of ten slots; tenants with jobs of different lengths come one after the other, the first with a large backlog: each one's share of worker time, as tenants of equal weight, and as one line (all jobs of one tenant)",
  systems: ["pawl"],
  jobs: 1_000_000,
  runs: 3,
  async run(bench) {
    const served = new Map<string, TenantShares>();
    const way = (name: string, apart: boolean, runs = bench.runs): Case => ({
      name,
      runs,
      async measure(turn) {
        const all = await serve(turn, bench.jobs, apart);
        served.set(name, all);
        return figuresOf(all);
      },
    });
    const [fair, line] = [way("fair", true), way("one line", false, 1)];
    const figures = await inCases(bench, [fair, line]);
    const of = figures.get(fair.name);
    return {
      results: caseRows(figures),
      ratio: of?.worst ?? null,
      parts: partsOf({ evenness: of?.evenness ?? null }),
      curves: [fair, line].flatMap(({ name }) => curvesOf(name, served.get(name))),
    };
  },
};

async function serve(turn: Turn, first: number, apart: boolean): Promise<TenantShares> {
  const producer = await turn.start();
  const children: Child[] = [];
  for (let i = 0; i < PROCESSES; i++) children.push(await turn.start());
  const counts = TENANTS.map(({ ms }, index) => Math.max(index === 0 ? first : 0, Math.ceil(SLOT_MS / ms)));
  const froms = counts.map((_, index) => counts.slice(0, index).reduce((sum, count) => sum + count, 0));
  const come = (index: number) => {
    const { ms } = TENANTS[index] as (typeof TENANTS)[number];
    const jobs = { from: froms[index] as number, count: counts[index] as number, ms };
    return producer.enqueueMany({ ...jobs, tenant: apart ? `tenant-${index}` : "tenant-0" });
  };
  await come(0);
  const upTo = counts.reduce((sum, count) => sum + count, 0);
  for (const child of children) await child.work({ upTo, concurrency: SLOTS });
  const began = await now(turn);
  for (let index = 1; index < TENANTS.length; index++) {
    turn.say(`${index} of ${TENANTS.length} tenants are there`);
    await sleep(STEP);
    await come(index);
  }
  const together = await now(turn);
  // One stop more: the first that is looked at begins when all are there.
  await sleep(TOGETHER + BUCKET);
  for (const child of children) await child.stop();
  await producer.stop();
  const stops = await history(turn, froms, began, together + TOGETHER + BUCKET);
  return { stops, together: Math.ceil((together - began) / BUCKET) };
}

async function now(turn: Turn): Promise<number> {
  const [row] = await turn.inspect.query<{ readonly at: number }>("select (extract(epoch from clock_timestamp()) * 1000)::float8 as at");
  return row?.at ?? Number.NaN;
}

/** What the history says of who had how much of each stop: attempts are rows of their own, or places in bundles. */
async function history(turn: Turn, froms: readonly number[], began: number, ended: number): Promise<TenantShares["stops"]> {
  const stops = Math.floor((ended - began) / BUCKET);
  const rows = await turn.inspect.query<{ readonly tenant: number; readonly stop: number; readonly ms: number }>(`
    with ran as materialized (
      select job, started_at, finished_at from pawl.any_attempt
    ),
    timed as materialized (
      select job, extract(epoch from started_at)::float8 * 1000 - ${began} as since, extract(epoch from finished_at)::float8 * 1000 - ${began} as until from ran
    )
    select width_bucket((j.input->>'n')::float8, array[${froms.join(", ")}]::float8[]) - 1 as tenant, s.stop,
      sum(least(t.until, (s.stop + 1) * ${BUCKET}) - greatest(t.since, s.stop * ${BUCKET}))::float8 as ms
    from timed t join pawl.job j on j.id = t.job
      cross join lateral generate_series(floor(greatest(t.since, 0) / ${BUCKET})::int, floor(least(t.until / ${BUCKET}, ${stops - 1}))::int) as s(stop)
    group by 1, 2`);
  return Array.from({ length: stops }, (_, stop) =>
    TENANTS.map((_tenant, index) => rows.find((row) => row.stop === stop && row.tenant === index)?.ms ?? 0),
  );
}

/** Over the time in which all are there. */
function figuresOf({ stops, together }: TenantShares): Figures {
  const all = stops.slice(together, together + TOGETHER / BUCKET);
  const had = TENANTS.map((_, index) => all.reduce((sum, stop) => sum + (stop[index] as number), 0));
  const total = had.reduce((sum, ms) => sum + ms, 0);
  const parts = had.map((ms) => ms / (total / TENANTS.length));
  const squares = parts.reduce((sum, part) => sum + part ** 2, 0);
  return { worst: rounded(Math.min(...parts)), evenness: rounded(parts.length ** 2 / (parts.length * squares)) };
}

function curvesOf(name: string, { stops }: TenantShares = { stops: [], together: 0 }): readonly Curve[] {
  if (stops.length === 0) return [];
  const share = (stop: readonly number[], index: number) => {
    const all = stop.reduce((sum, ms) => sum + ms, 0);
    return all === 0 ? null : Math.round(((stop[index] as number) / all) * 1_000) / 10;
  };
  return [
    {
      head: `Share of worker time, ${name}, over seconds`,
      stops: stops.map((_, stop) => String((stop * BUCKET) / 1_000)),
      lines: TENANTS.map((tenant, index) => ({ name: tenant.name, values: stops.map((stop) => share(stop, index)) })),
      unit: " %",
    },
  ];
}
