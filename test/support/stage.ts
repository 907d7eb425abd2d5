import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { type EnqueueOptions, type Job, type OpenOptions, open, type Pawl, type WorkerOptions } from "../../packages/pawl/src/index.js";
import { childTasks, EFFECTS } from "./child-tasks.js";
import { eventually } from "./eventually.js";
import { checkInvariants, connections, type Evidence, installWitness } from "./invariants.js";
import { Sink } from "./sink.js";
import { type ProcessOptions, WorkerProcess } from "./worker-process.js";

export interface StageOptions {
  readonly url: string;
  /** past a pooler or a proxy; absent: the same */
  readonly directUrl?: string;
  /** how the test itself opens it; it does no maintenance unless asked */
  readonly open?: OpenOptions;
}

/** Where a process of a stage works, and what else it does. */
export interface Where extends Pick<ProcessOptions, "produce"> {
  readonly url?: string;
  readonly env?: NodeJS.ProcessEnv;
}

/** Leases of a second, and maintenance at that pace: recovery that can be watched. */
export const SHORT = { work: { lease: "1s", renewal: "300ms" }, open: { maintenance: { lease: "1s", sweep: "200ms", pulse: "100ms" } } } as const;
/** Long enough that a loaded machine keeps them: for what must run exactly once. */
export const STEADY = { work: { lease: "3s", renewal: "700ms" }, open: { maintenance: { lease: "3s", sweep: "300ms", pulse: "200ms" } } } as const;

/** A database, a Pawl in the test's own process that enqueues, workers in others, and the evidence of what happened. */
export class Stage implements AsyncDisposable {
  readonly children: WorkerProcess[] = [];
  readonly acked: string[] = [];
  readonly #ends: (() => Promise<unknown> | undefined)[] = [];

  private constructor(
    readonly url: string,
    readonly directUrl: string,
    readonly folder: string,
    readonly sink: Sink,
    readonly pawl: Pawl,
    public client: pg.Client,
  ) {}

  static async open({ url, directUrl = url, open: how }: StageOptions): Promise<Stage> {
    await WorkerProcess.prepare();
    const folder = fs.mkdtempSync(join(tmpdir(), "pawl-test-"));
    const pawl = await open(url, { maintenance: false, ...how, tasks: childTasks() });
    const client = await connect(directUrl);
    await client.query(EFFECTS);
    await installWitness(client);
    return new Stage(url, directUrl, folder, new Sink(join(folder, "sink")), pawl, client);
  }

  /** The test's own connection, anew, after the server was gone. */
  async reconnect(): Promise<void> {
    await this.client.end().catch(() => {});
    this.client = await connect(this.directUrl);
  }

  /** What is stored, whoever was told of it. */
  async everyId(): Promise<readonly string[]> {
    return (await this.rows<{ id: string }>("select id::text from pawl.any_job")).map(({ id }) => id);
  }

  /** Called when everything else of the stage is over. */
  atEnd(call: () => Promise<unknown> | undefined): void {
    this.#ends.push(call);
  }

  async enqueue(task: string, input: unknown = {}, options: EnqueueOptions = {}): Promise<Job> {
    const job = await this.pawl.enqueue(task, input, options);
    this.acked.push(job.id);
    return job;
  }

  async enqueueMany(
    task: string,
    count: number,
    input: unknown = {},
    options: Omit<EnqueueOptions, "key" | "unique" | "request"> = {},
  ): Promise<readonly string[]> {
    const jobs = await this.pawl.enqueueMany(
      task,
      Array.from({ length: count }, () => input),
      options,
    );
    const ids = jobs.map(({ id }) => id);
    this.acked.push(...ids);
    return ids;
  }

  /** A process of its own; not waited for. */
  spawn(work: WorkerOptions | undefined, how: OpenOptions = {}, { url = this.url, env, produce }: Where = {}): WorkerProcess {
    const wanted = { ...(work === undefined ? {} : { work }), ...(produce === undefined ? {} : { produce }) };
    const child = new WorkerProcess({ url, sink: this.sink.path, ...wanted, open: how }, env);
    this.children.push(child);
    return child;
  }

  worker(work: WorkerOptions = {}, how: OpenOptions = {}, where: Where = {}): Promise<WorkerProcess> {
    return this.spawn(work, how, where).ready();
  }

  async rows<R extends object>(text: string, values: readonly unknown[] = []): Promise<readonly R[]> {
    return (await this.client.query(text, values as unknown[])).rows as R[];
  }

  async one<T>(text: string, values: readonly unknown[] = []): Promise<T> {
    const [row] = await this.rows<Record<string, T>>(text, values);
    return Object.values(row as Record<string, T>)[0] as T;
  }

  /** Rows of jobs that are not finished, by where they are; undefined if there are none. */
  async unfinished(): Promise<string | undefined> {
    const tables = ["any_ready", "scheduled", "parked", "blocked", "lease"];
    const rows = await this.rows<{ name: string; n: number }>(
      tables.map((name) => `select '${name}' as name, count(*)::int as n from pawl.${name}`).join(" union all "),
    );
    const left = rows.filter(({ n }) => n > 0).map(({ name, n }) => `${n} ${name}`);
    return left.length === 0 ? undefined : left.join(", ");
  }

  /** Waits until every job is finished. */
  async drained(ms = 60_000): Promise<void> {
    let left: string | undefined;
    const check = async () => {
      left = await this.unfinished();
      return left === undefined;
    };
    await eventually(() => `all jobs finished (left: ${left}; ${this.children.map((child) => child.describe()).join("; ")})`, check, ms);
  }

  started(job: string, ms?: number): Promise<boolean> {
    return eventually(`job ${job} started`, () => this.sink.of(job, "start").length > 0, ms);
  }

  async history(job: string): Promise<readonly string[]> {
    return (await this.pawl.jobs.history(job)).map(({ outcome }) => outcome);
  }

  async check(evidence: Partial<Evidence> = {}): Promise<void> {
    await checkInvariants({ client: this.client, sink: this.sink, acked: this.acked, attempted: this.acked, ...evidence });
  }

  connections(): Promise<ReadonlyMap<string, number>> {
    return connections(this.client);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.children.map((child) => child.kill()));
    await this.pawl.close();
    await this.client.end().catch(() => {});
    this.sink.close();
    for (const end of this.#ends.reverse()) await end();
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  return client;
}
