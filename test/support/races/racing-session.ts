import type pg from "pg";
import type { Driver, DriverRow, DriverTransaction, Statement } from "../../../packages/pawl/src/store/postgres/drivers/driver.js";
import { pgDriver } from "../../../packages/pawl/src/store/postgres/drivers/pg.js";

/**
 * The pieces that a verb is cut into: it stops after the statements it was told to stop after, before a commit, and
 * inside a statement where a barrier splits it.
 */
export interface VerbPieces {
  /** Names of statements to stop after; "commit": before it. */
  readonly stops?: readonly string[] | "everywhere";
  readonly splits?: readonly StatementSplit[];
}

/** Stops inside a statement: a barrier, which is a condition that is true once it is let through, is put into its text. */
export interface StatementSplit {
  readonly statement: string;
  readonly from: string;
  readonly to: (barrier: string) => string;
}

/** As the first of the conditions that begin with that text: between the snapshot and the lock on what they find. */
export function splitBefore(statement: string, condition: string): StatementSplit {
  return { statement, from: condition, to: (barrier) => `${barrier} and ${condition}` };
}

/** A statement with a clause taken out of its text or exchanged for another. */
export interface StatementMutation {
  /** its name; "" for those that have none */
  readonly statement: string;
  readonly from: string;
  readonly to: string;
}

type SessionState = "idle" | "running" | "stopped" | "parked" | "waiting" | "done";

/** One connection that runs one verb, piece by piece. */
export class RacingSession {
  state: SessionState = "idle";
  /** where it stands, for the story of a failure */
  at = "";
  answer: unknown;
  readonly driver: Driver;
  readonly #inner: Driver;
  #pieces: VerbPieces = {};
  #mutations: readonly StatementMutation[] = [];
  #goOn: (() => void) | undefined;
  #parkedAt = 0;

  constructor(
    readonly name: string,
    readonly number: number,
    config: pg.PoolConfig,
    /** it has stopped, or is done */
    readonly onRest: () => void,
  ) {
    // One statement after the other is all a verb ever does.
    this.#inner = pgDriver({ config: { ...config, max: 2, application_name: name }, prepare: "auto", statementTimeout: 20_000 });
    this.driver = this.#wrap(this.#inner);
  }

  prepare(pieces: VerbPieces, mutations: readonly StatementMutation[]): void {
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
      query: async <R extends DriverRow>(statement: Statement, values?: readonly unknown[]) => {
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

  #wrapTransaction(tx: DriverTransaction): DriverTransaction {
    return {
      query: async <R extends DriverRow>(statement: Statement, values?: readonly unknown[]) => {
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
    return { name: nameOf(text), text };
  }
}

/** A text is planned once per connection, however it was changed: so each that differs has a name of its own. */
const names = new Map<string, string>();
function nameOf(text: string): string {
  const name = names.get(text) ?? `race_${names.size}`;
  names.set(text, name);
  return name;
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
