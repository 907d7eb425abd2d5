import type { Schedules } from "../../contract/child.js";
import type { Figures, Scenario, Turn } from "../../contract/scenario.js";
import { partsOf } from "../../harness/figures.js";
import { short } from "../../report/figures.js";
import { type Case, caseRows, inCases } from "../cases.js";

const MINUTE = 60_000;
/** Jobs that the worker has run before the time comes, of as many tenants as it can: nobody's worker is new at midnight. */
const WARM_UP = 5_000;

export const schedules: Scenario = {
  name: "schedules",
  measures:
    "schedules, each of its own tenant: half as many at one time of day in every zone (those meet whose clocks agree), a fifth all at one instant, and all of them due over a minute; the start of the handler minus the time of the tick",
  systems: ["pawl"],
  jobs: 100_000,
  runs: 1,
  async run(bench) {
    const of = (name: string, count: number, when: Schedules["when"]): Case => ({
      name: `${short(count)} ${name}`,
      measure: (turn) => measured(turn, { count, when }),
    });
    const midnight = of("in their own zones", Math.ceil(bench.jobs / 2), "everywhere");
    const instant = of("at one instant", Math.ceil(bench.jobs / 5), "at once");
    const minute = of("over a minute", bench.jobs, { over: MINUTE });
    const figures = await inCases(bench, [midnight, instant, minute]);
    const p99 = ({ name }: Case) => figures.get(name)?.p99Ms;
    return {
      results: caseRows(figures),
      ratio: null,
      parts: partsOf({ midnightP99Ms: p99(midnight), instantP99Ms: p99(instant), minuteP99Ms: p99(minute) }),
    };
  },
};

/** Two processes share the ticks, as they do anywhere; one of them also runs the jobs. */
async function measured(turn: Turn, { count, when }: Omit<Schedules, "at">): Promise<Figures> {
  // Time enough to store them; cron expressions know whole minutes.
  const at = Math.ceil((Date.now() + 15_000 + count) / MINUTE) * MINUTE;
  const author = await turn.start();
  const { due } = await author.putSchedules({ count, at, when });
  await author.enqueueMany({ from: count, count: WARM_UP, tenants: WARM_UP });
  await author.stop();
  if (Date.now() > at) throw new Error(`it took ${Date.now() - at} ms too long to store ${count} schedules`);
  const [worker, other] = [await turn.start(), await turn.start()];
  await worker.work({ upTo: count + WARM_UP });
  await worker.ran(WARM_UP);
  turn.say(`${due} are due at ${new Date(at).toISOString()}`);
  const before = { server: await turn.inspect.usage(), clients: [await worker.usage(), await other.usage()] };
  const { lateness, twice } = await worker.ran(WARM_UP + due);
  const after = { server: await turn.inspect.usage(), clients: [await worker.usage(), await other.usage()] };
  await turn.recorded(WARM_UP + due);
  await Promise.all([worker.stop(), other.stop()]);
  await turn.verify(WARM_UP + due);
  const cpu = ({ server, clients }: typeof before) => server.cpuMs + clients.reduce((sum, { cpuMs }) => sum + cpuMs, 0);
  return {
    due,
    p50Ms: lateness.p50,
    p99Ms: lateness.p99,
    maxMs: lateness.max,
    // Waiting for the time to come costs next to nothing.
    cpuPer100kSeconds: ((cpu(after) - cpu(before)) / due) * 100,
    twice,
  };
}
