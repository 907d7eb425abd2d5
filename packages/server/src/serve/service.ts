import { type Duration, milliseconds, open, type Pawl, type Pusher, type Waiting, type Worker, type WorkOptions } from "pawl";
import { anchorsOf } from "../audit/configured.js";
import { reasonOf } from "../config/problem.js";
import type { Configuration } from "../config/read.js";
import type { Fault } from "../http/app.js";
import { BULK_QUEUE, BulkTask } from "../http/bulk-task.js";
import { PurgeTask } from "../http/purge-task.js";
import type { RequestFacts } from "../http/request-facts.js";
import { Networks } from "../net/network.js";
import { delivererBy } from "../push/registered.js";
import type { Environment } from "../secrets/secret.js";
import { Secrets } from "../secrets/secrets.js";
import type { MetricsOptions } from "../telemetry/metrics.js";
import type { Level } from "../words/events.js";
import { accessOf } from "./access.js";
import { type Door, openDoor } from "./door.js";
import { checkMastersFit } from "./fit.js";
import { prepare } from "./prepare.js";
import { apiRouting, healthRouting, type Routing } from "./routing.js";
import { targetRules } from "./store.js";
import type { ServiceTracing } from "./tracing.js";

/** What a service needs of its process. */
export interface World {
  readonly env: Environment;
  /** One line for whoever runs it; left out: the level info. */
  say(line: string, level?: Level, fields?: Readonly<Record<string, unknown>>): void;
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

const PUSHED_AT_ONCE = 50;

/**
 * Starts what the configuration says, from the door inwards: whoever asks is told the truth from the first moment, also
 * while the store is waited for. What is wrong with the configuration is a `ConfigError`.
 */
export async function startService(configuration: Configuration, world: World): Promise<Service> {
  const { settings } = configuration;
  const secrets = new Secrets(world.env);
  const say: World["say"] = (line, level, fields) => world.say(secrets.clean(line), level, fields);
  const { tracing, target, options, anchorKey, notes } = await prepare(configuration, secrets);
  for (const note of notes) say(`note        ${note}`);
  const door = await openDoor(configuration, secrets, {
    trouble: (error) => say(`tls         ${reasonOf(error)}`, "error"),
    onRequest: settings["log.requests"] ? world.onRequest?.bind(world) : undefined,
  });
  // Said at once: it is answered there, if only that the store is not there yet.
  if (door !== undefined) say(`listening   ${door.address}`);
  let pawl: Pawl | undefined;
  try {
    const bulk = new BulkTask();
    const purges = new PurgeTask();
    const tasks = [...options.tasks, bulk.task, purges.task];
    pawl = await open(target.url, {
      ...target.options,
      ...options,
      tasks,
      onWaiting: (what) => say(waitingLine(what), what.for === "server" ? "warn" : "info"),
    });
    const { audit, replies } = pawl;
    await checkMastersFit(configuration, pawl, say);
    bulk.attach(pawl, audit);
    purges.attach(pawl);
    const anchors = await anchorsOf(configuration, anchorKey, pawl, (error) => say(`audit       no anchor was written: ${reasonOf(error)}`, "error"));
    const access = accessOf(settings, pawl);
    const requests = {
      pawl,
      access,
      ...(tracing === undefined ? {} : { tracing: tracing.requests }),
      ...(settings.trustedProxies === undefined ? {} : { trustedProxies: new Networks(settings.trustedProxies) }),
      audit,
      replies,
      onFault: ({ error, request, route }: Fault) =>
        say(`fault       ${route}${request === undefined ? "" : ` (${request})`}: ${reasonOf(error)}`, "error", { request_id: request, route }),
    };
    const routing = await (settings.roles.includes("api") ? apiRouting : healthRouting)(requests, metricsOptions(configuration));
    door?.front.handOver(routing.handler);
    const worker = settings.roles.includes("worker") ? await pawl.work(workOptions(configuration)) : undefined;
    const pusher = worker === undefined ? undefined : await pawl.push(delivererBy(targetRules(settings)), pushOptions(configuration));
    return running({ configuration, pawl, worker, pusher, door, routing, anchors, tracing });
  } catch (error) {
    await door?.close(AbortSignal.abort());
    await pawl?.close();
    throw error;
  }
}

function workOptions({ settings }: Configuration): WorkOptions {
  const { "worker.concurrency": concurrency, "worker.mostLost": mostLost, "worker.queues": queues, "worker.name": name } = settings;
  return {
    drain: settings["shutdown.drain"],
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(mostLost === undefined ? {} : { mostLost }),
    // Bulk operations are of the service itself: whichever queues its workers are for, they carry them out.
    ...(queues === undefined ? {} : { queues: [...new Set([...queues, BULK_QUEUE])] }),
    ...(name === undefined ? {} : { name }),
  };
}

/** Of its own: what waits for others to answer takes no slot of the handlers here. */
function pushOptions({ settings }: Configuration): WorkOptions {
  const { "push.concurrency": concurrency = PUSHED_AT_ONCE, "worker.queues": queues, "worker.name": name } = settings;
  return {
    concurrency,
    drain: settings["shutdown.drain"],
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

interface Parts {
  readonly configuration: Configuration;
  readonly pawl: Pawl;
  readonly worker: Worker | undefined;
  readonly pusher: Pusher | undefined;
  readonly door: Door | undefined;
  readonly routing: Routing;
  readonly anchors: { stop(): Promise<void> } | undefined;
  readonly tracing: ServiceTracing | undefined;
}

function running({ configuration: { settings }, pawl, worker, pusher, door, routing, anchors, tracing }: Parts): Service {
  let ending: Promise<void> | undefined;
  async function end(): Promise<void> {
    door?.front.sayNotReady();
    // Load balancers look every so often: until they have, requests still come here.
    const delay = milliseconds(settings["shutdown.delay"]);
    if (delay > 0) await new Promise((resolve) => setTimeout(resolve, delay));
    const deadline = AbortSignal.timeout(milliseconds(settings["shutdown.drain"]));
    // Requests and jobs finish side by side; what they need, the store, goes last.
    await Promise.all([door?.close(deadline), routing.close(), worker?.stop(), pusher?.stop()]);
    await anchors?.stop();
    await pawl.close();
    await tracing?.flush();
  }
  return {
    pawl,
    address: door?.address,
    stop() {
      ending ??= end();
      return ending;
    },
    kill() {
      for (const one of pawl.localWorkers()) one.kill();
    },
  };
}

function waitingLine(what: Waiting): string {
  return what.for === "server" ? `waiting     ${what.error.message}` : `migrating   ${what.migration}: ${what.moved.toLocaleString("en")} rows moved`;
}
