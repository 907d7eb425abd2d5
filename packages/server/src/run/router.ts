import type { RequestListener } from "node:http";
import { type AppOptions, createApp } from "../http/app.js";
import { livez, readyz } from "../http/contract/operate/service.js";
import type { HandledRoute } from "../http/handler.js";
import { routes } from "../http/routes/index.js";
import { type MetricsOptions, metricsOf } from "../telemetry/metrics/metrics.js";
import { metricsHandler } from "./metrics-route.js";

/** What a service answers with, and how it ends what would not end by itself. */
export interface Router {
  readonly handler: RequestListener;
  close(): Promise<void>;
}

/** The API, with metrics beside it. */
export function apiRouter(options: AppOptions, metrics: MetricsOptions = {}): Promise<Router> {
  return openRouter(options, metrics, routes);
}

/** Of a process without an API: whether it lives, whether it serves, and its metrics. */
export function healthRouter(options: AppOptions, metrics: MetricsOptions = {}): Promise<Router> {
  return openRouter(
    options,
    metrics,
    routes.filter(({ route }) => route === livez || route === readyz),
  );
}

async function openRouter(options: AppOptions, metricsOptions: MetricsOptions, served: readonly HandledRoute[]): Promise<Router> {
  const metrics = metricsOf(options.pawl, metricsOptions);
  const app = createApp({ ...options, routes: [...served, metricsHandler(metrics)] });
  await app.ready();
  return {
    handler: (request, response) => app.routing(request, response),
    async close() {
      metrics.stop();
      await app.close();
    },
  };
}
