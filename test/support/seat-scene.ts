import { randomBytes, randomUUID } from "node:crypto";
import pg from "pg";
import { type BootId, type JobId, tailSource } from "../../packages/pawl/src/core/id.js";
import type { JobOptions, NewJob } from "../../packages/pawl/src/core/job.js";
import type { Lane } from "../../packages/pawl/src/core/lane.js";
import { type Clock, systemClock } from "../../packages/pawl/src/runtime/clock.js";
import type { Store } from "../../packages/pawl/src/store/port.js";
import type { Handed, Seat, SeatOptions, Seats } from "../../packages/pawl/src/store/port-seats.js";
import { openPostgres } from "../../packages/pawl/src/store/postgres/open.js";
import { eventually } from "./eventually.js";

export const LANE: Lane = { queue: "default", band: 5, tenant: "acme", task: "call" };
export const LEASE = 15_000;
/** Each time it is asked a second has gone by, so whoever enqueues has been silent before. */
let asked = 0;
const SILENT: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + 1_000 * asked++ };
const tail = tailSource((size) => randomBytes(size));

interface Given {
  readonly lane?: Partial<Lane>;
  readonly input?: string;
  readonly options?: JobOptions;
}

export function newJob({ lane, input = '{"n":1}', options }: Given = {}): NewJob {
  return { tail: tail(lane?.tenant ?? LANE.tenant), lane: { ...LANE, ...lane }, input, options };
}

/** Two processes' stores on one database, and a look at it from outside. */
export class SeatScene implements AsyncDisposable {
  readonly worker = { name: "ana", boot: randomUUID() as BootId };
  readonly came: Handed[] = [];
  #seat: Seat | undefined;

  private constructor(
    readonly producer: Store,
    readonly consumer: Store,
    readonly sql: pg.Pool,
  ) {}

  static async open(url: string): Promise<SeatScene> {
    const sql = new pg.Pool({ connectionString: url, max: 1 });
    sql.on("error", () => {});
    const producer = await openPostgres({ url }, { clock: SILENT });
    const consumer = await openPostgres({ url });
    return new SeatScene(producer, consumer, sql);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#seat?.leave();
    await Promise.all([this.producer.close(), this.consumer.close()]);
    await this.sql.end();
  }

  seat(how: Partial<SeatOptions> = {}): Seat {
    const onHanded = (handed: Handed) => void this.came.push(handed);
    const options = { worker: this.worker, queues: undefined, tasks: ["call"], duration: LEASE, onHanded, onError: () => {}, ...how };
    return (this.consumer.seats as Seats).of(options);
  }

  /** Sits, and answers once there is a seat. */
  async sit(how: Partial<SeatOptions> = {}): Promise<Seat> {
    this.#seat ??= this.seat(how);
    this.#seat.sit();
    await eventually("there is a seat", async () => (await this.freeSeats()) > 0);
    return this.#seat;
  }

  /** What is handed over next. */
  async handed(): Promise<Handed> {
    await eventually("something is handed over", () => this.came.length > 0);
    return this.came.shift() as Handed;
  }

  /** Stands up for good; answers what had come by then. */
  async leave(): Promise<Handed | undefined> {
    await this.#seat?.leave();
    return this.came.shift();
  }

  async enqueue(options: Given = {}): Promise<JobId> {
    const [answer] = await this.producer.jobs.enqueue([newJob(options)]);
    return (answer as { id: JobId }).id;
  }

  async counts(): Promise<{ readonly ready: number; readonly running: number }> {
    const { ready = 0, running = 0 } = (await this.producer.records.counts())[0]?.counts ?? {};
    return { ready, running };
  }

  async freeSeats(): Promise<number> {
    return (await this.sql.query("select from pawl.seat where lease is null")).rows.length;
  }
}
