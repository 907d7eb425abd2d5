import { type Duration, open, type Pawl } from "pawl";
import { milliseconds, type OpenWait, type Pusher, serviceOf } from "pawl/service";
import type { Worker, WorkerOptions } from "pawl/worker";
import { startAnchorWriter } from "../audit/configured-anchors.js";
import { reasonOf } from "../config/problem.js";
import type { Configuration } from "../config/read.js";
import type { Fault } from "../http/app.js";
import type { RequestFacts } from "../http/request/request-facts.js";
import { BULK_QUEUE, BulkTask } from "../http/tasks/bulk-task.js";
import { PurgeTask } from "../http/tasks/purge-task.js";
import { Networks } from "../net/network.js";
import { deliverer } from "../push/registered-targets.js";
import type { Environment } from "../secrets/secret.js";
import { Secrets } from "../secrets/secrets.js";
import type { Level } from "../telemetry/logs/event-phrases.js";
import type { MetricsOptions } from "../telemetry/metrics/metrics.js";
import { accessOf } from "./access.js";
import { checkMasterKeysFit } from "./check-master-keys.js";
import { checkPepperFits } from "./check-pepper.js";
import { type OpenedListener, openListener } from "./open-listener.js";
import { targetRules } from "./open-store.js";
import { prepare } from "./prepare.js";
import { apiRouter, healthRouter, type Router } from "./router.js";
import type { ServiceTracing } from "./tracing.js";

/** What a service needs of its process. */
export interface ServiceEnvironment {
  readonly env: Environment;
  /** One line for whoever runs it; left out: the level info. */
  writeLine(line: string, level?: Level, fields?: Readonly<Record<string, unknown>>): void;
  /** Hears of every request once it is over; left out: nobody wants to. */
  onRequest?(facts: RequestFacts): void;
}

/** A running service: one process of a cluster, or all of it. */
export interface Service {
  readonly pawl: Pawl;
  /** where it answers; undefined: nowhere */
  readonly address: string | undefined;
  /** Says not ready, finishes requests and jobs, and closes the store. Again is the same. */
  stop(): Promise<void>;
  /** Ends handlers at once, before the process goes. */
  kill(): void;
}

const DEFAULT_PUSH_CONCURRENCY = 50;

/**
 * Starts what the configuration says, from the listener inwards: whoever asks is told the truth from the first moment, also
 * while the store is waited for. What is wrong with the configuration is a `ConfigError`.
 */
export async function startService(configuration: Configuration, environment: ServiceEnvironment): Promise<Service> {
  const { settings } = configuration;
  const secrets = new Secrets(environment.env);
  const writeLine: ServiceEnvironment["writeLine"] = (line, level, fields) => environment.writeLine(secrets.clean(line), level, fields);
  const { tracing, target, options, anchorKey, notes } = await prepare(configuration, secrets);
  for (const note of notes) writeLine(`note        ${note}`);
  const opened = await openListener(configuration, secrets, {
    onError: (error) => writeLine(`tls         ${reasonOf(error)}`, "error"),
    onRequest: settings["log.requests"] ? environment.onRequest?.bind(environment) : undefined,
  });
  // Said at once: it is answered there, if only that the store is not there yet.
  if (opened !== undefined) writeLine(`listening   ${opened.address}`);
  let pawl: Pawl | undefined;
  try {
    const bulk = new BulkTask();
    const purges = new PurgeTask();
    const tasks = [...options.tasks, bulk.task, purges.task];
    pawl = await open(target.url, {
      ...target.options,
      ...options,
      tasks,
      onWaiting: (what) => writeLine(waitingLine(what), what.for === "server" ? "warn" : "info"),
    });
    const { audit, idempotency: replies } = serviceOf(pawl);
    await checkMasterKeysFit(configuration, pawl, writeLine);
    await checkPepperFits(configuration, pawl, writeLine);
    bulk.attach(pawl, audit);
    purges.attach(pawl);
    const anchors = await startAnchorWriter(configuration, anchorKey, pawl, (error) =>
      writeLine(`audit       no anchor was written: ${reasonOf(error)}`, "error"),
    );
    const access = accessOf(settings, pawl);
    const requests = {
      pawl,
      access,
      ...(tracing === undefined ? {} : { tracing: tracing.requests }),
      ...(settings.trustedProxies === undefined ? {} : { trustedProxies: new Networks(settings.trustedProxies) }),
      audit,
      replies,
      onFault: ({ error, request, route }: Fault) =>
        writeLine(`fault       ${route}${request === undefined ? "" : ` (${request})`}: ${reasonOf(error)}`, "error", { requestId: request, route }),
    };
    const router = await (settings.components.includes("api") ? apiRouter : healthRouter)(requests, metricsOptions(configuration));
    opened?.listener.setHandler(router.handler);
    const worker = settings.components.includes("worker") ? await pawl.work(workOptions(configuration)) : undefined;
    const pusher = worker === undefined ? undefined : await serviceOf(pawl).push(deliverer(targetRules(settings)), pushOptions(configuration));
    return runningService({ configuration, pawl, worker, pusher, opened, router, anchors, tracing });
  } catch (error) {
    await opened?.close(AbortSignal.abort());
    await pawl?.close();
    throw error;
  }
}

function workOptions({ settings }: Configuration): WorkerOptions {
  const { "worker.concurrency": concurrency, "worker.mostLost": mostLost, "worker.queues": queues, "worker.name": name } = settings;
  return {
    shutdownGrace: settings["shutdown.grace"],
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(mostLost === undefined ? {} : { mostLost }),
    // Bulk operations are of the service itself: whichever queues its workers are for, they carry them out.
    ...(queues === undefined ? {} : { queues: [...new Set([...queues, BULK_QUEUE])] }),
    ...(name === undefined ? {} : { name }),
  };
}

/** Of its own: what waits for others to answer takes no slot of the handlers here. */
function pushOptions({ settings }: Configuration): WorkerOptions {
  const { "push.concurrency": concurrency = DEFAULT_PUSH_CONCURRENCY, "worker.queues": queues, "worker.name": name } = settings;
  return {
    concurrency,
    shutdownGrace: settings["shutdown.grace"],
    ...(queues === undefined ? {} : { queues }),
    ...(name === undefined ? {} : { name }),
  };
}

function metricsOptions({ settings }: Configuration): MetricsOptions {
  const { "metrics.objectives": objectives, "metrics.tenants": tenants } = settings;
  const inMs = ([task, time]: [string, Duration]) => [task, milliseconds(time)];
  return {
    ...(objectives === undefined ? {} : { objectives: Object.fromEntries(Object.entries(objectives).map(inMs)) }),
    ...(tenants === undefined ? {} : { tenants }),
  };
}

interface ServiceDeps {
  readonly configuration: Configuration;
  readonly pawl: Pawl;
  readonly worker: Worker | undefined;
  readonly pusher: Pusher | undefined;
  readonly opened: OpenedListener | undefined;
  readonly router: Router;
  readonly anchors: { stop(): Promise<void> } | undefined;
  readonly tracing: ServiceTracing | undefined;
}

function runningService({ configuration: { settings }, pawl, worker, pusher, opened, router, anchors, tracing }: ServiceDeps): Service {
  let stopping: Promise<void> | undefined;
  async function end(): Promise<void> {
    opened?.listener.markNotReady();
    // Load balancers look every so often: until they have, requests still come here.
    const delay = milliseconds(settings["shutdown.delay"]);
    if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay));
    const deadline = AbortSignal.timeout(milliseconds(settings["shutdown.grace"]));
    // Requests and jobs finish side by side; what they need, the store, goes last.
    await Promise.all([opened?.close(deadline), router.close(), worker?.stop(), pusher?.stop()]);
    await anchors?.stop();
    await pawl.close();
    await tracing?.flush();
  }
  return {
    pawl,
    address: opened?.address,
    stop() {
      stopping ??= end();
      return stopping;
    },
    kill() {
      for (const one of pawl.workers.local()) one.kill();
    },
  };
}

function waitingLine(what: OpenWait): string {
  return what.for === "server" ? `waiting     ${what.error.message}` : `migrating   ${what.migration}: ${what.moved.toLocaleString("en")} rows moved`;
}
