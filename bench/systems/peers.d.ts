/**
 * The little of the peers' types that we use: they are installed only when they are measured, and the rest of the
 * project must compile without them.
 */
declare module "pg-boss" {
  export interface Insert {
    readonly data: object;
    readonly startAfter?: Date;
  }
  export interface WorkOptions {
    readonly batchSize: number;
    readonly localConcurrency: number;
    readonly pollingIntervalSeconds: number;
    readonly burstWhenBatchFull: boolean;
  }
  export class PgBoss {
    constructor(options: {
      host: string;
      port: number;
      user: string;
      database: string;
      max: number;
      useListenNotify: boolean;
    });
    on(event: "error", listener: (error: Error) => void): this;
    start(): Promise<this>;
    stop(options: { graceful: boolean }): Promise<void>;
    createQueue(name: string, options: { notify: boolean }): Promise<void>;
    send(name: string, data: object, options: { startAfter?: Date }): Promise<string | null>;
    insert(name: string, jobs: readonly Insert[]): Promise<readonly string[] | null>;
    work<Data>(name: string, options: WorkOptions, handler: (jobs: readonly { readonly data: Data }[]) => Promise<void>): Promise<string>;
  }
}

declare module "graphile-worker" {
  export class Logger {
    constructor(factory: () => () => void);
  }
  export interface Spec {
    readonly runAt?: Date;
  }
  export interface WorkerUtils {
    migrate(): Promise<void>;
    addJob(task: string, payload: unknown, spec: Spec): Promise<unknown>;
    addJobs(specs: readonly (Spec & { readonly identifier: string; readonly payload: unknown })[]): Promise<readonly unknown[]>;
    release(): Promise<void>;
  }
  export interface WorkerPreset {
    readonly connectionString: string;
    readonly concurrentJobs?: number;
    readonly maxPoolSize: number;
    readonly logger: Logger;
    readonly localQueue?: { readonly size: number };
    readonly completeJobBatchDelay?: number;
    readonly failJobBatchDelay?: number;
  }
  export function makeWorkerUtils(options: { readonly preset: { readonly worker: WorkerPreset } }): Promise<WorkerUtils>;
  export interface Runner {
    stop(): Promise<void>;
  }
  export function run(options: {
    readonly preset: { readonly worker: WorkerPreset };
    readonly noHandleSignals: boolean;
    readonly taskList: Readonly<Record<string, (input: unknown) => Promise<void>>>;
  }): Promise<Runner>;
}

declare module "bullmq" {
  export interface BackendFactory {
    readonly backend: symbol;
  }
  export const createPostgresBackend: BackendFactory;
  export function runMigrations(client: object): Promise<number>;
  export interface Options {
    readonly connection: object;
  }
  export class Queue<Data> {
    constructor(name: string, options: Options, backend?: BackendFactory);
    waitUntilReady(): Promise<unknown>;
    add(name: string, data: Data, options: { delay?: number }): Promise<unknown>;
    addBulk(jobs: readonly { name: string; data: Data; opts: { delay?: number } }[]): Promise<unknown>;
    close(): Promise<void>;
  }
  export class Worker<Data = unknown> {
    constructor(
      name: string,
      handler: (job: { readonly data: Data }) => Promise<void>,
      options: Options & { readonly concurrency: number },
      backend?: BackendFactory,
    );
    on(event: "error", listener: (error: Error) => void): this;
    waitUntilReady(): Promise<unknown>;
    close(): Promise<void>;
  }
}

declare module "bee-queue" {
  export interface Job {
    delayUntil(at: Date): this;
    save(): Promise<this>;
  }
  export default class BeeQueue<Data> {
    constructor(
      name: string,
      settings: {
        readonly redis: { readonly socket: string };
        readonly getEvents: boolean;
        readonly sendEvents: boolean;
        readonly storeJobs: boolean;
        readonly isWorker?: boolean;
        readonly activateDelayedJobs?: boolean;
        readonly delayedDebounce?: number;
      },
    );
    ready(): Promise<this>;
    createJob(data: Data): Job;
    saveAll(jobs: readonly Job[]): Promise<ReadonlyMap<Job, Error>>;
    process(concurrency: number, handler: (job: { readonly data: Data }) => Promise<void>): void;
    close(): Promise<void>;
  }
}

declare module "ioredis" {
  export class Redis {
    constructor(options: { readonly path: string; readonly lazyConnect?: boolean });
    connect(): Promise<void>;
    on(event: "error", listener: (error: Error) => void): this;
    call(command: string, ...args: readonly (string | number)[]): Promise<unknown>;
    disconnect(): void;
  }
}
