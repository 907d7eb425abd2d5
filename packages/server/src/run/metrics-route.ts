import { route } from "../http/contract/route.js";
import { type HandledRoute, on, RawAnswer } from "../http/handler.js";
import type { Metrics } from "../telemetry/metrics/metrics.js";

/** Not of the contract, since Prometheus says what it is; asked for and denied as what is. */
const metricsRoute = route({
  id: "metrics",
  method: "GET",
  path: "/metrics",
  summary: "What Prometheus scrapes",
  // They name tenants and tasks of everybody.
  policy: { action: "workers.read", scope: "everyone" },
  // That the store is away is what they have to tell: who asks for them cannot be looked up there.
  inOutage: true,
  status: 200,
  answer: { means: "The metrics.", media: "text/plain" },
});

export function metricsHandler(metrics: Metrics): HandledRoute {
  return on(metricsRoute, async () => new RawAnswer(metrics.contentType, await metrics.text()));
}
