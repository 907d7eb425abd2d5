import type { RequestListener } from "node:http";
import { type Pawl, pawlError, permit } from "pawl";
import { type Access, OPEN_ACCESS } from "../http/access.js";
import { type AppOptions, createApp } from "../http/app.js";
import { Readiness } from "../http/ready.js";
import { metricsOf } from "../telemetry/metrics.js";
import { answer, pathOf, refuse } from "./front.js";

/** What a service answers with, and how it ends what would not end by itself. */
export interface Routing {
  readonly handler: RequestListener;
  close(): Promise<void>;
}

/** The API, with metrics beside it. */
export async function apiRouting(options: AppOptions): Promise<Routing> {
  const app = createApp(options);
  await app.ready();
  return withMetrics(options.pawl, options.access ?? OPEN_ACCESS, {
    handler: (request, response) => app.routing(request, response),
    close: async () => {
      await app.close();
    },
  });
}

/** Of a process without an API: whether it lives, whether it serves, and its metrics. */
export function healthRouting(pawl: Pawl, access: Access): Routing {
  const readiness = new Readiness(pawl);
  return withMetrics(pawl, access, {
    handler: (request, response) => {
      const path = pathOf(request);
      if (path === "/livez") answer(response, 200, { status: "alive" });
      else if (path === "/readyz") {
        readiness.check().then(
          () => answer(response, 200, { status: "ready" }),
          (error: unknown) => refuse(response, error),
        );
      } else refuse(response, pawlError("route_unknown", { method: request.method, path }));
    },
    close: async () => {},
  });
}

function withMetrics(pawl: Pawl, access: Access, { handler, close }: Routing): Routing {
  const metrics = metricsOf(pawl);
  const tell: RequestListener = async (request, response) => {
    try {
      const { authorization } = request.headers;
      const principal = await access.authenticate({ authorization, address: request.socket.remoteAddress ?? "", certificate: [] });
      if ("refused" in principal) throw pawlError("unauthenticated");
      // They name tenants and tasks of everybody.
      const permission = permit(principal, "workers.read");
      if (!permission.allowed) throw pawlError("forbidden", { action: "metrics", reason: permission.why });
      const text = await metrics.text();
      response.writeHead(200, { "content-type": metrics.contentType, "cache-control": "no-store" });
      response.end(text);
    } catch (error) {
      refuse(response, error);
    }
  };
  return {
    handler: (request, response) => (pathOf(request) === "/metrics" && request.method === "GET" ? tell : handler)(request, response),
    async close() {
      metrics.stop();
      await close();
    },
  };
}
