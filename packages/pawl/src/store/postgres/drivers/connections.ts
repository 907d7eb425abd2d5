import type pg from "pg";
import { ConcurrencyLimiter } from "../../../runtime/io/concurrency-limiter.js";
import { DriverError, poisonsConnection, storeClosed } from "../connection/errors.js";
import { hangUp } from "./pg-hang-up.js";
import { loadPg } from "./pg-module.js";
import { Unreplicated } from "./pg-replication.js";
import { sqlState } from "./sql-state.js";

/** ms that those in use are waited for when all are closed */
const LAST_USE_MS = 5_000;
/** ms that one is kept at hand after its last use; the pool closes it after as long again */
const AT_HAND_MS = 60_000;

/**
 * A pool whose users wait in order and without a time limit (the pool's own limit is for connecting), that survives its
 * connections' deaths, and closes them for good.
 */
export class Connections {
  readonly #pool: pg.Pool;
  // Between the pool's handing one out and our having it, the same packet may bring its end.
  readonly #clients = new Set<pg.PoolClient>();
  /** Those who wait for the pool to hand one out. */
  readonly #asking = new Set<() => void>();
  readonly #unreplicated = new Unreplicated();
  readonly #statements: ConcurrencyLimiter;
  /** Those nobody uses, the last used one last: the pool would take a turn of the event loop to hand one out. */
  #atHand: { readonly client: pg.PoolClient; readonly since: number }[] = [];
  readonly #sweep: NodeJS.Timeout;
  #closed = false;
  #connected = false;
  /** The server's last silence. Who stood in line since before need not find it out again, one time-out after the other. */
  #silence: { readonly at: number; readonly error: DriverError } | undefined;

  constructor(config: pg.PoolConfig & { readonly max: number }) {
    const { Pool } = loadPg();
    this.#pool = new Pool({ connectionTimeoutMillis: 5_000, idleTimeoutMillis: AT_HAND_MS, keepAlive: true, application_name: "pawl", ...config });
    this.#statements = new ConcurrencyLimiter(config.max);
    // A connection that dies while idle is replaced at its next use; without a listener it would end the process.
    this.#pool.on("error", () => {});
    this.#pool.on("connect", (client) => {
      client.on("error", () => this.#letGo((one) => one.client === client, true));
      this.#unreplicated.watch(client);
      client.once("end", () => {
        this.#clients.delete(client);
        this.#letGo((one) => one.client === client, true);
      });
      this.#clients.add(client);
    });
    this.#sweep = setInterval(() => this.#letGo(({ since }) => performance.now() - since >= AT_HAND_MS), AT_HAND_MS).unref();
  }

  /** whether one was ever to be had */
  get connected(): boolean {
    return this.#connected;
  }

  async use<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const asked = performance.now();
    return this.#statements.run(async () => {
      const client = this.#atHand.pop()?.client ?? (await this.#connect(asked));
      let broken = false;
      try {
        return await work(client);
      } catch (error) {
        broken = error instanceof DriverError && poisonsConnection(error.code);
        throw error;
      } finally {
        this.giveBack(client, broken);
      }
    });
  }

  /** One to be given back by whoever asked for it, at the moment `asked`. */
  async take(asked: number): Promise<pg.PoolClient> {
    return this.#atHand.pop()?.client ?? this.#connect(asked);
  }

  giveBack(client: pg.PoolClient, broken: boolean): void {
    // Who waits for the pool waits for those it handed out.
    if (broken || this.#closed || !this.#clients.has(client) || this.#pool.waitingCount > 0) client.release(broken);
    else this.#atHand.push({ client, since: performance.now() });
  }

  async #connect(asked: number): Promise<pg.PoolClient> {
    if (this.#closed) throw storeClosed();
    if (this.#silence !== undefined && this.#silence.at >= asked) throw this.#silence.error;
    try {
      const client = await this.#ask();
      this.#silence = undefined;
      this.#connected = true;
      return client;
    } catch (cause) {
      if (this.#closed) throw storeClosed(cause);
      const error = new DriverError("unsent", sqlState(cause), cause);
      if (error.code === undefined) this.#silence = { at: performance.now(), error };
      throw error;
    }
  }

  /** The pool forgets who waits for a connection when it ends: they are told so here. */
  #ask(): Promise<pg.PoolClient> {
    return new Promise((resolve, reject) => {
      const giveUp = () => reject(storeClosed());
      this.#asking.add(giveUp);
      this.#pool.connect().then(
        (client) => {
          if (this.#asking.delete(giveUp)) resolve(client);
          else client.release(true);
        },
        (cause) => {
          this.#asking.delete(giveUp);
          reject(cause);
        },
      );
    });
  }

  /** Throws if what just committed is not on the standby it must be on. */
  check(client: pg.PoolClient): void {
    this.#unreplicated.check(client);
  }

  #letGo(which: (one: { readonly client: pg.PoolClient; readonly since: number }) => boolean, broken = false): void {
    const gone = this.#atHand.filter(which);
    if (gone.length === 0) return;
    this.#atHand = this.#atHand.filter((one) => !gone.includes(one));
    for (const { client } of gone) client.release(broken);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweep);
    for (const giveUp of this.#asking) giveUp();
    this.#asking.clear();
    this.#letGo(() => true);
    // It waits for those that are in use: a handler that does not end may hold one for ever.
    const tooLong = new Promise((resolve) => setTimeout(resolve, LAST_USE_MS).unref());
    await Promise.race([this.#pool.end(), tooLong]);
    await Promise.all([...this.#clients].map(hangUp));
  }
}
