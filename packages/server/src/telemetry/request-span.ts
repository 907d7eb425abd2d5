import { ROOT_CONTEXT, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import type { RequestTracing } from "../http/request-trace.js";
import { carried, contextOf } from "./w3c.js";

/** Follows requests to the API with OpenTelemetry: a span of their caller's trace, under which what they enqueue hangs. */
export function otelRequests(tracer: Tracer = trace.getTracer("pawl")): RequestTracing {
  return {
    begin({ method, path, request, tenant, parent }) {
      const attributes = {
        "http.request.method": method,
        "http.route": path,
        "pawl.request": request,
        ...(tenant === undefined ? {} : { "pawl.tenant": tenant }),
      };
      const around = parent === undefined ? ROOT_CONTEXT : contextOf(parent);
      const span = tracer.startSpan(`${method} ${path}`, { kind: SpanKind.SERVER, attributes }, around);
      return {
        trace: carried(span.spanContext()),
        end(status) {
          span.setAttribute("http.response.status_code", status);
          // What the caller did wrong is no error of the service.
          if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
          span.end();
        },
      };
    },
  };
}
