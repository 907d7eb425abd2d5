import { type Context, createTraceState, ROOT_CONTEXT, type SpanContext, trace } from "@opentelemetry/api";
import type { TraceContext } from "pawl/service";

/**
 * OpenTelemetry's contexts as W3C Trace Context writes them. The API has no such thing, and the application's own
 * propagator may be another one: what is stored with a job must be read by workers in any language.
 */
export function traceContextOf({ traceId, spanId, traceFlags, traceState }: SpanContext): TraceContext {
  const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
  const tracestate = traceState?.serialize() ?? "";
  return tracestate === "" || tracestate.length > MAX_TRACESTATE_CHARACTERS ? { traceparent } : { traceparent, tracestate };
}

const MAX_TRACESTATE_CHARACTERS = 512;

/** A context in which that span, of whatever process, is the current one. */
export function contextOf({ traceparent, tracestate }: TraceContext): Context {
  const [, traceId = "", spanId = "", flags = "0"] = traceparent.split("-");
  const traceState = tracestate === undefined ? {} : { traceState: createTraceState(tracestate) };
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true, ...traceState });
}
