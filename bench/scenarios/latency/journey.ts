import type { Figures, Scenario, Turn } from "../../contract/scenario.js";
import { figureOf } from "../../harness/figures.js";

const PER_SECOND = 50;
const ALONE = 500;
const WARM_UP = 500;

/** Which statement is which, by the table that only it inserts into. */
const STEPS = { enqueue: "insert into pawl.job ", claim: "insert into pawl.lease", settle: "insert into pawl.(attempt|bundle|history)" } as const;
type Step = keyof typeof STEPS;
type Spent = Readonly<Record<Step | "others", number>>;

export const journey: Scenario = {
  name: "journey",
  measures: `where the time of one job goes: one of many, drained by one worker, and one alone, at ${PER_SECOND} jobs per second`,
  systems: ["pawl"],
  jobs: 100_000,
  runs: 3,
  async run(bench) {
    const samples = {
      "of many": await bench.turns((turn) => ofMany(turn, bench.jobs), { countStatements: true, title: "of many" }),
      alone: await bench.turns(alone, { countStatements: true, aim: "latency", title: "alone" }),
    };
    const results = Object.entries(samples).map(([name, turns]) => {
      const all: readonly Figures[] = turns.get("pawl") ?? [];
      return {
        system: "pawl",
        case: name,
        ...Object.fromEntries(Object.keys(all[0] ?? {}).map((figure) => [figure, figureOf("pawl", figure, all) ?? Number.NaN])),
      };
    });
    return { results, ratio: null, parts: {} };
  },
};

/** CPU of the clients and of the server per job, and the server's by statement. */
async function ofMany(turn: Turn, jobs: number): Promise<Figures> {
  const producer = await turn.start();
  const worker = await turn.start();
  // What made the tables is no job's.
  await turn.inspect.query("select pg_stat_statements_reset()");
  const before = await turn.inspect.usage();
  const clients = [await producer.usage(), await worker.usage()] as const;
  await producer.enqueueMany({ count: jobs });
  await worker.work({ upTo: jobs });
  await worker.ran(jobs);
  await turn.recorded(jobs);
  const used = async (child: typeof worker, since: { readonly cpuMs: number }) => (await child.usage()).cpuMs - since.cpuMs;
  const [enqueueing, working] = [await used(producer, clients[0]), await used(worker, clients[1])];
  await producer.stop();
  await worker.stop();
  const server = (await turn.inspect.usage()).cpuMs - before.cpuMs;
  const spent = await statements(turn);
  await turn.verify(jobs);
  const each = (ms: number) => (ms / jobs) * 1_000;
  return {
    enqueuingClientUs: each(enqueueing),
    workingClientUs: each(working),
    enqueueStatementUs: each(spent.enqueue),
    claimStatementUs: each(spent.claim),
    settleStatementUs: each(spent.settle),
    otherStatementsUs: each(spent.others),
    // Commits, parsing, sockets, the writers behind.
    restOfServerUs: each(Math.max(0, server - spent.enqueue - spent.claim - spent.settle - spent.others)),
  };
}

/** From the call of enqueue to the start of the handler: what of it is the two statements on the way. */
async function alone(turn: Turn): Promise<Figures> {
  const producer = await turn.start();
  const worker = await turn.start();
  await worker.work({ upTo: WARM_UP + ALONE });
  await producer.enqueueEach({ count: WARM_UP, inFlight: 1 });
  await worker.ran(WARM_UP);
  await turn.inspect.query("select pg_stat_statements_reset()");
  const before = [await producer.usage(), await worker.usage()] as const;
  await producer.enqueuePaced({ from: WARM_UP, count: ALONE, perSecond: PER_SECOND });
  const { latency } = await worker.ran(WARM_UP + ALONE);
  const used = async (child: typeof worker, since: { readonly cpuMs: number }) => ((await child.usage()).cpuMs - since.cpuMs) / ALONE;
  const [enqueueing, working] = [await used(producer, before[0]), await used(worker, before[1])];
  const spent = await statements(turn);
  await turn.recorded(WARM_UP + ALONE);
  await worker.stop();
  await producer.stop();
  await turn.verify(WARM_UP + ALONE);
  const us = (ms: number) => ms * 1_000;
  return {
    enqueuingClientUs: us(enqueueing),
    workingClientUs: us(working),
    enqueueStatementUs: us(spent.enqueue / ALONE),
    claimStatementUs: us(spent.claim / ALONE),
    settleStatementUs: us(spent.settle / ALONE),
    otherStatementsUs: us(spent.others / ALONE),
    startedAfterUs: us(latency.p50),
  };
}

/** ms that the server has spent executing, by step. */
async function statements(turn: Turn): Promise<Spent> {
  const of = (pattern: string) => `coalesce(sum(total_exec_time) filter (where query ~ '${pattern}'), 0)::float8`;
  const [row] = await turn.inspect.query<Spent>(
    `select ${Object.entries(STEPS)
      .map(([step, pattern]) => `${of(pattern)} as ${step}`)
      .join(", ")}, coalesce(sum(total_exec_time) filter (where query !~ '${Object.values(STEPS).join("|")}' and query ~ 'pawl'), 0)::float8 as others
     from pg_stat_statements where dbid = (select oid from pg_database where datname = current_database())`,
  );
  if (row === undefined) throw new Error("nothing was counted");
  return row;
}
