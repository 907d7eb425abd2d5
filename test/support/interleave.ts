import pg from "pg";
import type { Driver, Row, Statement, Transaction } from "../../packages/pawl/src/store/postgres/drivers/driver.js";
import { pgDriver } from "../../packages/pawl/src/store/postgres/drivers/pg.js";
import type { Database } from "./servers.js";

/**
 * Forces the order of what several connections do. A session runs one verb, piece by piece: it stops after the
 * statements it was told to stop after, before a commit, and inside a statement where a barrier splits it. Which
 * session goes on next is the test's choice alone; one that waits for another's lock is known by `pg_blocking_pids`.
 */
export interface Pieces {
  /** Names of statements to stop after; "commit": before it. */
  readonly stops?: readonly string[] | "everywhere";
  readonly splits?: readonly Split[];
}

/** Stops inside a statement: a barrier, which is a condition that is true once it is let through, is put into its text. */
export interface Split {
  readonly statement: string;
  readonly from: string;
  readonly to: (barrier: string) => string;
}

/** As the first of the conditions that begin with that text: between the snapshot and the lock on what they find. */
export function splitBefore(statement: string, condition: string): Split {
  return { statement, from: condition, to: (barrier) => `${barrier} and ${condition}` };
}

/** A statement with a clause taken out of its text or exchanged for another. */
export interface Mutation {
  /** its name; "" for those that have none */
  readonly statement: string;
  readonly from: string;
  readonly to: string;
}

type State = "idle" | "running" | "stopped" | "parked" | "waiting" | "done";

class Session {
  state: State = "idle";
  /** where it stands, for the story of a failure */
  at = "";
  answer: unknown;
  readonly driver: Driver;
  readonly #inner: Driver;
  #pieces: Pieces = {};
  #mutations: readonly Mutation[] = [];
  #goOn: (() => void) | undefined;
  #parkedAt = 0;

  constructor(
    readonly name: string,
    readonly number: number,
    config: pg.PoolConfig,
    /** it has stopped, or is done */
    readonly onRest: () => void,
  ) {
    // One statement after the other is all a verb ever does; without names, texts may be changed freely.
    this.#inner = pgDriver({ config: { ...config, max: 2, application_name: name }, prepare: false, statementTimeout: 20_000 });
    this.driver = this.#wrap(this.#inner);
  }

  prepare(pieces: Pieces, mutations: readonly Mutation[]): void {
    this.state = "idle";
    this.at = "";
    this.answer = undefined;
    this.#pieces = pieces;
    this.#mutations = mutations;
  }

  barriers(): readonly number[] {
    return (this.#pieces.splits ?? []).map((_, index) => this.#barrier(index));
  }

  park(barrier: number): void {
    this.state = "parked";
    this.#parkedAt = barrier;
    this.at = `inside ${this.#pieces.splits?.[barrier % 100]?.statement}`;
  }

  start(work: () => Promise<unknown>): void {
    this.state = "running";
    const finish = (answer: unknown) => {
      this.answer = answer;
      this.at = "done";
      this.state = "done";
      this.onRest();
    };
    work().then(finish, (error: unknown) => finish({ threw: describe(error) }));
  }

  /** Goes on from where it stands. */
  async proceed(control: pg.Client): Promise<void> {
    const { state } = this;
    this.state = "running";
    if (state === "parked") await control.query("select pg_advisory_unlock($1)", [this.#parkedAt]);
    else this.#goOn?.();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #barrier(index: number): number {
    return this.number * 100 + index;
  }

  #wrap(inner: Driver): Driver {
    return {
      ...inner,
      query: async <R extends Row>(statement: Statement, values?: readonly unknown[]) => {
        const rows = await inner.query<R>(this.#changed(statement), values);
        await this.#stop(statement.name);
        return rows;
      },
      transaction: (work) =>
        inner.transaction(async (tx) => {
          const result = await work(this.#wrapTransaction(tx));
          await this.#stop("commit");
          return result;
        }),
      close: async () => {},
    };
  }

  #wrapTransaction(tx: Transaction): Transaction {
    return {
      query: async <R extends Row>(statement: Statement, values?: readonly unknown[]) => {
        const rows = await tx.query<R>(this.#changed(statement), values);
        await this.#stop(statement.name);
        return rows;
      },
      run: (text, values) => tx.run(this.#changedText(text), values),
    };
  }

  /** Statements without a name are told by their text. */
  #changedText(text: string): string {
    const nameless = this.#mutations.filter((one) => one.statement === "" && text.includes(one.from));
    return nameless.reduce((changed, { from, to }) => changed.replaceAll(from, to), text);
  }

  async #stop(name: string): Promise<void> {
    const plain = plainName(name);
    if (this.state !== "running" && this.state !== "waiting") return;
    const { stops } = this.#pieces;
    if (stops !== "everywhere" && !stops?.includes(plain)) return;
    const gone = new Promise<void>((resolve) => {
      this.#goOn = resolve;
    });
    this.at = plain === "commit" ? "before commit" : `after ${plain}`;
    this.state = "stopped";
    this.onRest();
    await gone;
  }

  #changed(statement: Statement): Statement {
    const name = plainName(statement.name);
    let { text } = statement;
    for (const { from, to } of this.#mutations.filter((one) => one.statement === name)) text = exchange(text, name, from, to);
    (this.#pieces.splits ?? []).forEach((split, index) => {
      if (split.statement !== name) return;
      text = exchange(text, name, split.from, split.to(`pg_advisory_xact_lock_shared(${this.#barrier(index)})::text = ''`));
    });
    return { name: statement.name, text };
  }
}

/** The facts of one job are read by a statement of their own, which is the same to a race. */
function plainName(name: string): string {
  return name.replace(/^pawl_/, "").replace(/^facts_one$/, "facts");
}

/** A clause that is not there any more must be looked for, not passed over. */
function exchange(text: string, name: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`the statement ${name} has no "${from}" any more: the race test must follow it`);
  return text.replaceAll(from, to);
}

function describe(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: unknown };
  return cause === undefined ? String(message ?? error) : `${message} (${describe(cause)})`;
}

/** ms between looks at who waits for whom: looking without a pause takes the time away from those looked at */
const LONGEST_WAIT = 8;

const ACTIVITY = `
  select a.application_name as name, cardinality(pg_blocking_pids(a.pid)) > 0 as blocked,
    (select l.objid::int from pg_locks l where l.pid = a.pid and l.locktype = 'advisory' and not l.granted) as barrier
  from pg_stat_activity a where a.datname = current_database() and a.application_name = any($1) and a.state = 'active'`;

export interface Told {
  readonly answers: readonly unknown[];
  /** each session ran from its start to its end without another in between */
  readonly serial: boolean;
  /** in which order they ran then */
  readonly order: readonly number[];
  /** all waited for each other until the server broke the circle */
  readonly circle: boolean;
  readonly story: readonly string[];
}

/** Several sessions on one database, and the one that says who goes on. */
export class Interleaver {
  readonly sessions: readonly Session[];
  readonly #control: pg.Client;
  #hear: () => void = () => {};

  private constructor(config: pg.PoolConfig, count: number, control: pg.Client) {
    this.sessions = Array.from({ length: count }, (_, index) => new Session(`race ${"abcd"[index]}`, index + 1, config, () => this.#hear()));
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
    verbs: readonly (Pieces & { readonly run: (driver: Driver) => Promise<unknown>; readonly mutations?: readonly Mutation[] })[],
    choose: (runnable: number) => number,
    begin: readonly number[] = [],
  ): Promise<Told> {
    const sessions = verbs.map((verb, index) => {
      const session = this.sessions[index] as Session;
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
        const next = forced ?? (able[able.length === 1 ? 0 : choose(able.length)] as Session);
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
  async #quiet(sessions: readonly Session[]): Promise<void> {
    for (let wait = 1; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
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

  async #look(sessions: readonly Session[]): Promise<ReadonlyMap<string, { blocked: boolean; barrier: number | null }>> {
    const values = [sessions.map(({ name }) => name)];
    const { rows } = await this.#control.query<{ name: string; blocked: boolean; barrier: number | null }>({
      name: "activity",
      text: ACTIVITY,
      values,
    });
    return new Map(rows.map((row) => [row.name, row]));
  }

  async #untilOneMoves(open: readonly Session[]): Promise<void> {
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
    const told = await run((runnable) => {
      const pick = prefix[made.length] ?? 0;
      made.push({ pick, of: runnable });
      return pick;
    });
    if (told === "stop") return runs;
    for (let at = made.length - 1; at >= prefix.length; at--) {
      const before = made.slice(0, at).map(({ pick }) => pick);
      for (let other = (made[at]?.of ?? 1) - 1; other >= 1; other--) pending.push([...before, other]);
    }
  }
  return runs;
}
