import { ROOT_CONTEXT, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import type { RequestTracing } from "../../http/request/request-trace.js";
import { contextOf, traceContextOf } from "./w3c.js";

/** Follows requests to the API with OpenTelemetry: a span of their caller's trace, under which what they enqueue hangs. */
export function otelRequests(tracer: Tracer = trace.getTracer("pawl")): RequestTracing {
  return {
    begin({ method, path, request, tenant, parent }) {
      const attributes = {
        "http.request.method": method,
        "http.route": path,
        "pawl.idempotency_key": request,
        ...(tenant === undefined ? {} : { "pawl.tenant": tenant }),
      };
      const around = parent === undefined ? ROOT_CONTEXT : contextOf(parent);
      const span = tracer.startSpan(`${method} ${path}`, { kind: SpanKind.SERVER, attributes }, around);
      return {
        trace: traceContextOf(span.spanContext()),
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
