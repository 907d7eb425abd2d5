import pg from "pg";
import type { Driver } from "../../../packages/pawl/src/store/postgres/drivers/driver.js";
import type { Database } from "../servers/servers.js";
import { type LabelUse, RacingSession, type StatementMutation, type VerbPieces } from "./racing-session.js";

/** ms between looks at who waits for whom: looking without a pause takes the time away from those looked at */
const LOOK_PAUSE_MS = 8;

/** Only who waits for another session waits for long: autovacuum, say, lets everybody go on in a moment. */
const ACTIVITY = `
  select a.application_name as name,
    exists (select from pg_stat_activity b where b.pid = any(pg_blocking_pids(a.pid)) and b.application_name like 'race %') as blocked,
    (select l.objid::int from pg_locks l where l.pid = a.pid and l.locktype = 'advisory' and not l.granted) as barrier
  from pg_stat_activity a where a.datname = current_database() and a.application_name = any($1) and a.state = 'active'`;

export interface InterleavedRun {
  readonly answers: readonly unknown[];
  /** each session ran from its start to its end without another in between */
  readonly serial: boolean;
  /** in which order they ran then */
  readonly order: readonly number[];
  /** all waited for each other until the server broke the circle */
  readonly circle: boolean;
  readonly story: readonly string[];
}

/**
 * Forces the order of what several connections do: several sessions on one database, and the one that says who goes on.
 * Which session that is is the test's choice alone; one that waits for another's lock is known by `pg_blocking_pids`.
 */
export class Interleaver {
  readonly sessions: readonly RacingSession[];
  readonly #control: pg.Client;
  #hear: () => void = () => {};
  readonly labels: LabelUse = { found: new Set(), unusable: new Set() };

  private constructor(config: pg.PoolConfig, count: number, control: pg.Client) {
    this.sessions = Array.from(
      { length: count },
      (_, index) => new RacingSession(`race ${"abcd"[index]}`, index + 1, config, () => this.#hear(), this.labels),
    );
    this.#control = control;
  }

  static async open(database: Database, count = 3): Promise<Interleaver> {
    const control = new pg.Client({ ...database.directConfig, application_name: "race control", options: "-c jit=off" });
    await control.connect();
    const config = { ...database.config, options: "-c deadlock_timeout=50ms -c synchronous_commit=off" };
    return new Interleaver(config, count, control);
  }

  get control(): pg.Client {
    return this.#control;
  }

  /** Runs the verbs in one order of their pieces: `choose` says which of the sessions that can go on does. */
  async run(
    verbs: readonly (VerbPieces & { readonly run: (driver: Driver) => Promise<unknown>; readonly mutations?: readonly StatementMutation[] })[],
    choose: (runnable: number) => number,
    begin: readonly number[] = [],
  ): Promise<InterleavedRun> {
    const sessions = verbs.map((verb, index) => {
      const session = this.sessions[index] as RacingSession;
      session.prepare(verb, verb.mutations ?? []);
      return session;
    });
    const barriers = sessions.flatMap((session) => session.barriers());
    for (const barrier of barriers) await this.#control.query("select pg_advisory_lock($1)", [barrier]);
    const story: string[] = [];
    const moves: number[] = [];
    let circle = false;
    try {
      for (;;) {
        const open = sessions.filter(({ state }) => state !== "done");
        if (open.length === 0) break;
        const able = open.filter(({ state }) => state !== "waiting");
        if (able.length === 0) {
          circle = true;
          story.push("all wait for each other");
          await this.#untilOneMoves(open);
          continue;
        }
        const forced = sessions[begin[moves.length] ?? -1];
        const next = forced ?? (able[able.length === 1 ? 0 : choose(able.length)] as RacingSession);
        const number = sessions.indexOf(next);
        moves.push(number);
        if (next.state === "idle") next.start(() => (verbs[number] as (typeof verbs)[number]).run(next.driver));
        else await next.proceed(this.#control);
        await this.#quiet(sessions);
        story.push(`${"abcd"[number]} → ${next.state === "waiting" ? "waits for a lock" : next.at}`);
      }
    } finally {
      await this.#control.query("select pg_advisory_unlock_all()");
    }
    const order = [...new Set(moves)];
    const serial = moves.every((move, index) => index === 0 || move === moves[index - 1] || !moves.slice(0, index).includes(move));
    return { answers: sessions.map(({ answer }) => answer), serial, order, circle, story };
  }

  /** Until every session has stopped, is done, or waits for a lock that another holds. */
  async #quiet(sessions: readonly RacingSession[]): Promise<void> {
    for (let wait = 1; ; wait = Math.min(2 * wait, LOOK_PAUSE_MS)) {
      await this.#rest(wait);
      // Who runs is noted before the look: whoever stops during it may have let another go on.
      const busy = sessions.filter(({ state }) => state === "running" || state === "waiting");
      if (busy.length === 0) return;
      const seen = await this.#look(busy);
      let still = true;
      for (const session of busy) {
        const found = seen.get(session.name);
        // What the session said meanwhile is newer than what was seen.
        if (session.state !== "running" && session.state !== "waiting") still = false;
        else if (found?.barrier != null && Math.floor(found.barrier / 100) === session.number) session.park(found.barrier);
        else if (found?.blocked) session.state = "waiting";
        else {
          session.state = "running";
          still = false;
        }
      }
      if (still) return;
    }
  }

  /** Until a session says that it has stopped; one that waits for a lock does not say so, and is looked for after a while. */
  async #rest(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#hear = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#hear = () => {};
  }

  async #look(sessions: readonly RacingSession[]): Promise<ReadonlyMap<string, { blocked: boolean; barrier: number | null }>> {
    const values = [sessions.map(({ name }) => name)];
    const { rows } = await this.#control.query<{ name: string; blocked: boolean; barrier: number | null }>({
      name: "activity",
      text: ACTIVITY,
      values,
    });
    return new Map(rows.map((row) => [row.name, row]));
  }

  async #untilOneMoves(open: readonly RacingSession[]): Promise<void> {
    do await this.#quiet(open);
    while (open.every(({ state }) => state === "waiting"));
  }

  async close(): Promise<void> {
    for (const session of this.sessions) await session.close();
    await this.#control.end();
  }
}

/**
 * Every order there is: runs again and again, each time with another sequence of choices. `limit` guards against a
 * race with too many pieces, which must say so instead of running for ever.
 */
export async function everyOrder(limit: number, run: (choose: (runnable: number) => number) => Promise<"go on" | "stop">): Promise<number> {
  const pending: (readonly number[])[] = [[]];
  let runs = 0;
  for (let given = pending.pop(); given !== undefined; given = pending.pop()) {
    const made: { readonly pick: number; readonly of: number }[] = [];
    const prefix = given;
    if (++runs > limit) throw new Error(`more than ${limit} orders: give the race fewer pieces`);
    const result = await run((runnable) => {
      const pick = prefix[made.length] ?? 0;
      made.push({ pick, of: runnable });
      return pick;
    });
    if (result === "stop") return runs;
    for (let at = made.length - 1; at >= prefix.length; at--) {
      const before = made.slice(0, at).map(({ pick }) => pick);
      for (let other = (made[at]?.of ?? 1) - 1; other >= 1; other--) pending.push([...before, other]);
    }
  }
  return runs;
}
