import { setTimeout as sleep } from "node:timers/promises";
import { monotonic } from "../child/clock.ts";
import type { Child, Jobs, Ran } from "../contract/child.js";
import type { Turn } from "../contract/scenario.js";
import type { Spread } from "../contract/system.js";

/** what a process runs before it counts: its code is compiled by then, its connections are open */
const WARM_UP = 20_000;
/** of those, where limits are measured, so many of which one in a hundred is under one: enough that some wait for others */
const WARM_LIMITED = 10_000;
/** jobs of one call of enqueueMany */
const CHUNK = 100_000;
const LOOK_MS = 2;
const DRAIN_TIMEOUT_MS = 60_000;

export interface Crew {
  readonly processes?: number;
  /** in each process */
  readonly workers?: number;
  /** waits until the server has written and vacuumed what was stored (default: no) */
  readonly calm?: boolean;
  /** whether jobs under a limit are among those that warm it up (default: no) */
  readonly limited?: boolean;
}

export interface Drained {
  /** from the first handler call until a second connection sees every outcome recorded */
  readonly perSecond: number;
  /** handler calls beyond one per job, in all processes */
  readonly twice: number;
  /** whatever went wrong, in all processes, the warming up included */
  readonly errors: number;
  readonly complaints: readonly string[];
  /** one per process */
  readonly ran: readonly Ran[];
  readonly claims: readonly Spread[];
}

/**
 * Drains a backlog with workers that are warm, so that what differs between two backlogs does not hide behind the start of
 * a process: they run some jobs, are paused while the backlog is made, and resume. Jobs with a due time are not waited for,
 * nor those that are parked, but for the first, which is let in.
 */
export async function drainedWarm(
  turn: Turn,
  backlog: readonly Jobs[],
  { processes = 1, workers = 1, calm: calmly = false, limited = false }: Crew = {},
): Promise<Drained> {
  const count = backlog.reduce((sum, jobs) => sum + waitedFor(jobs), 0);
  const delayed = total(backlog) - count;
  const producer = await turn.start();
  const children: Child[] = [];
  for (let i = 0; i < processes; i++) children.push(await turn.start());

  const warm = WARM_UP * processes;
  for (const child of children) await child.work({ upTo: warm, workers, watch: true });
  const warmed = ranTogether(children, warm);
  const underLimit = limited ? WARM_LIMITED : 0;
  await producer.enqueueMany({ count: warm - underLimit });
  if (limited) await producer.enqueueMany({ from: warm - underLimit, count: underLimit, limited: "one key" });
  await warmed;
  await recorded(turn);

  await producer.pause();
  for (const child of children) await child.forget(count);
  for (const jobs of backlog) await store(turn, producer, jobs);
  if (calmly) await calm(turn);
  if ((await Promise.all(children.map((child) => child.report()))).some((ran) => ran.count > 0)) throw new Error("a paused worker ran jobs");
  const before = await Promise.all(children.map((child) => child.watched()));

  const all = ranTogether(children, count);
  await producer.resume();
  await all;
  const ended = await recorded(turn);

  const ran = await Promise.all(children.map((child) => child.report()));
  const watched = await Promise.all(children.map((child) => child.watched()));
  for (const child of [...children, producer]) await child.stop();
  await verify(turn, warm + count, delayed);
  const began = Math.min(...ran.filter((of) => of.count > 0).map(({ first }) => first));
  const calls = ran.reduce((sum, of) => sum + of.count + of.twice, 0);
  const said = [...before, ...watched];
  return {
    perSecond: (count / (ended - began)) * 1_000,
    twice: calls - count,
    errors: said.reduce((sum, { errors }) => sum + errors, 0),
    complaints: said.flatMap(({ samples }) => samples),
    ran,
    claims: watched.map(({ claims }) => claims),
  };
}

/** In chunks, so that a backlog of millions need not fit into the memory of the process that makes it. */
async function store(turn: Turn, producer: Child, jobs: Jobs): Promise<void> {
  const { from = 0, count } = jobs;
  // Parts of a call may overtake each other: the one that is to be let in comes before all of them.
  const alone = jobs.limited === "parked" ? 1 : 0;
  if (alone > 0) await producer.enqueueMany({ ...jobs, from, count: alone });
  for (let stored = alone; stored < count; stored += CHUNK) {
    await producer.enqueueMany({ ...jobs, from: from + stored, count: Math.min(CHUNK, count - stored) });
    turn.say(`${Math.min(count, stored + CHUNK).toLocaleString("en")} jobs stored`);
  }
}

const CALM_MS = 240_000;

/** Millions of rows leave the server writing and vacuuming for a while: that is the price of storing them, not of their being there. */
async function calm(turn: Turn): Promise<void> {
  turn.say("waiting until the server has nothing left to write or to vacuum");
  const patience = monotonic() + CALM_MS;
  // Autovacuum looks once a minute: left to it, some turns would be vacuumed and some not.
  await turn.inspect.query("vacuum");
  for (let looks = 0; looks < 3 && monotonic() < patience; ) {
    await turn.inspect.query("checkpoint");
    await sleep(1_000);
    const [row] = await turn.inspect.query<{ readonly busy: string }>(
      "select count(*) as busy from pg_stat_activity where backend_type = 'autovacuum worker'",
    );
    looks = Number(row?.busy) === 0 ? looks + 1 : 0;
  }
}

/** Several processes tell how far they are, so that nobody counts rows while they work. */
function ranTogether(children: readonly Child[], count: number): Promise<unknown> {
  const [only] = children;
  if (children.length === 1 && only !== undefined) return only.ran(count);
  const ran = children.map(() => 0);
  return new Promise<void>((resolve) => {
    for (const [index, child] of children.entries()) {
      child.onProgress((soFar) => {
        ran[index] = soFar;
        if (ran.reduce((sum, of) => sum + of, 0) >= count) resolve();
      });
    }
  });
}

/** As `turn.recorded`, of jobs that all have run, without counting millions of delayed ones at every look. */
async function recorded(turn: Turn): Promise<number> {
  const patience = monotonic() + DRAIN_TIMEOUT_MS;
  for (;;) {
    const looked = monotonic();
    const unsettled = await turn.inspect.unsettled();
    if (unsettled === 0) return looked;
    if (looked > patience) throw new Error(`${unsettled} jobs are not recorded after a minute`);
    await sleep(LOOK_MS);
  }
}

async function verify(turn: Turn, ran: number, left: number): Promise<void> {
  const { finished, unfinished } = await turn.inspect.counts();
  if (finished !== ran || unfinished !== left) throw new Error(`${finished} of ${ran} jobs are recorded, ${unfinished} of ${left} are left`);
}

function waitedFor({ count, due, limited }: Jobs): number {
  return due !== undefined ? 0 : limited === "parked" ? 1 : count;
}

function total(backlog: readonly Jobs[]): number {
  return backlog.reduce((sum, { count }) => sum + count, 0);
}
