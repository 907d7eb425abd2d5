import type { RequestListener } from "node:http";
import { type AppOptions, createApp } from "../http/app.js";
import { livez, readyz } from "../http/contract/service.js";
import type { Handled } from "../http/handler.js";
import { routes } from "../http/routes/index.js";
import { type MetricsOptions, metricsOf } from "../telemetry/metrics.js";
import { metricsHandled } from "./metrics.js";

/** What a service answers with, and how it ends what would not end by itself. */
export interface Routing {
  readonly handler: RequestListener;
  close(): Promise<void>;
}

/** The API, with metrics beside it. */
export function apiRouting(options: AppOptions, metrics: MetricsOptions = {}): Promise<Routing> {
  return routing(options, metrics, routes);
}

/** Of a process without an API: whether it lives, whether it serves, and its metrics. */
export function healthRouting(options: AppOptions, metrics: MetricsOptions = {}): Promise<Routing> {
  return routing(
    options,
    metrics,
    routes.filter(({ route }) => route === livez || route === readyz),
  );
}

async function routing(options: AppOptions, measured: MetricsOptions, served: readonly Handled[]): Promise<Routing> {
  const metrics = metricsOf(options.pawl, measured);
  const app = createApp({ ...options, routes: [...served, metricsHandled(metrics)] });
  await app.ready();
  return {
    handler: (request, response) => app.routing(request, response),
    async close() {
      metrics.stop();
      await app.close();
    },
  };
}
