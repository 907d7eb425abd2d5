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

/**
 * Stops inside the statements that have this label: a barrier, which is a condition that is true once it is let through, is put into
 * their text. `-- stop: label` at the end of a line with a condition puts it before that: between the snapshot and the lock on what is
 * found. On a line of its own, it becomes the condition of what stands above it. `to` says it for any other line.
 */
export interface StatementSplit {
  readonly at: string;
  readonly to?: (barrier: string, clause: string) => string;
}

/** A clause that is taken out of its statement, or exchanged for another: the line that ends with `-- guard: label`. */
export interface StatementMutation {
  readonly guard: string;
  readonly becomes?: string | ((clause: string) => string);
}

/** Labels that a race names, as far as they were used. */
export interface LabelUse {
  /** those in the statements that ran */
  readonly found: Set<string>;
  /** statements that lost a parameter with a clause: the server refuses them, whatever the clause was for */
  readonly unusable: Set<string>;
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
    readonly labels: LabelUse,
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
    this.at = `inside at ${this.#pieces.splits?.[barrier % 100]?.at}`;
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
    const text = this.#changedText(statement.text);
    return { name: nameOf(text), text };
  }

  #changedText(text: string): string {
    let changed = text;
    for (const { guard, becomes = "" } of this.#mutations) {
      changed = this.#exchange(changed, `guard: ${guard}`, (clause) => (typeof becomes === "string" ? becomes : becomes(clause)));
    }
    (this.#pieces.splits ?? []).forEach(({ at, to = withBarrier }, index) => {
      const barrier = `pg_advisory_xact_lock_shared(${this.#barrier(index)})::text = ''`;
      changed = this.#exchange(changed, `stop: ${at}`, (clause) => to(barrier, clause));
    });
    if (parametersOf(changed) !== parametersOf(text)) this.labels.unusable.add(changed);
    return changed;
  }

  /** The lines with that label, exchanged. They keep the label. */
  #exchange(text: string, label: string, to: (clause: string) => string): string {
    if (!text.includes(`-- ${label}`)) return text;
    return text
      .split("\n")
      .map((line) => {
        const [clause = "", ...labels] = line.split("-- ");
        if (!labels.some((one) => one.trim() === label)) return line;
        this.labels.found.add(label);
        return `${to(clause.trim())} -- ${labels.join("-- ")}`;
      })
      .join("\n");
  }
}

/** Which parameters there are. */
function parametersOf(text: string): string {
  return [...new Set(text.match(/\$\d+/g))].sort().join();
}

/** As the first of the conditions in the clause. */
function withBarrier(barrier: string, clause: string): string {
  if (clause === "") return `where ${barrier}`;
  const [, word = "", condition = ""] = /^((?:where|and|when)\s+)?(.*)$/s.exec(clause) ?? [];
  return `${word}${barrier} and ${condition}`;
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

function describe(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: unknown };
  return cause === undefined ? String(message ?? error) : `${message} (${describe(cause)})`;
}
