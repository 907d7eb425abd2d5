import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace-base";
import { otelTracing } from "pawl-server/telemetry";
import type { Input, Session, StoreLocation } from "../contract/system.ts";
import { connectWith } from "./pawl.ts";
import { follow } from "./pawl-observed.ts";

/** One job of so many is followed. Chosen by its number, since an enqueue of many is one span, followed or not. */
const ONE_IN = 100;

const nowhere: SpanExporter = { export: (_, done) => done({ code: 0 }), shutdown: async () => {} };

function traceOf({ n }: Input) {
  const id = (n + 1).toString(16).padStart(16, "0");
  return n % ONE_IN === 0 ? { traceparent: `00-${id}${id}-${id}-01` } : undefined;
}

export function connect(location: StoreLocation): Promise<Session> {
  const sampler = new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(1 / ONE_IN) });
  const provider = new BasicTracerProvider({ sampler, spanProcessors: [new BatchSpanProcessor(nowhere)] });
  return connectWith(location, { tracing: otelTracing({ tracer: provider.getTracer("bench") }) }, { follow, traceOf });
}
