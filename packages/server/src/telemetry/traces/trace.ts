import { type Attributes, context, ROOT_CONTEXT, type Span, SpanKind, SpanStatusCode, type Tracer, trace } from "@opentelemetry/api";
import type { Context, PawlError } from "pawl";
import { type EnqueueSpan, pawlError, type TracedEnqueue, type Tracing } from "pawl/service";
import { contextOf, traceContextOf } from "./w3c.js";

export interface OtelOptions {
  /** default: the application's own, by OpenTelemetry's API */
  readonly tracer?: Tracer;
  /** whether attempts at jobs that carry no trace begin one, as those of schedules always do (default: no) */
  readonly roots?: boolean;
}

/**
 * Follows jobs with OpenTelemetry: a span for the enqueue, whose context is stored with the jobs, and one for every
 * attempt, in whatever process, as its child. What is not sampled is not stored, so that it costs next to nothing; and
 * an attempt at a job without a trace begins none, or the sampler would be asked again for each.
 */
export function otelTracing(options: OtelOptions = {}): Tracing {
  const { tracer = trace.getTracer("pawl"), roots = false } = checkOptions(options);
  return {
    enqueue: (what) => enqueueSpan(tracer, what),
    attempt: (ctx, next) => (ctx.trace === undefined && ctx.tick === undefined && !roots ? next() : attempt(tracer, ctx, next)),
  };
}

function enqueueSpan(tracer: Tracer, { task, verb, parent }: TracedEnqueue): EnqueueSpan | undefined {
  const around = parent === undefined ? context.active() : contextOf(parent);
  const attributes = { ...SYSTEM, "messaging.operation.name": verb, "messaging.operation.type": "send", "pawl.task": task };
  const span = tracer.startSpan(`enqueue ${task}`, { kind: SpanKind.PRODUCER, attributes }, around);
  if (!span.isRecording()) return undefined;
  return {
    trace: traceContextOf(span.spanContext()),
    end(answer) {
      if ("error" in answer) fail(span, answer.error);
      else {
        span.setAttribute("messaging.batch.message_count", answer.jobs);
        if (answer.job !== undefined) span.setAttribute("messaging.message.id", answer.job);
      }
      span.end();
    },
  };
}

async function attempt(tracer: Tracer, ctx: Context, next: () => Promise<unknown>): Promise<unknown> {
  const around = ctx.trace === undefined ? ROOT_CONTEXT : contextOf(ctx.trace);
  const span = tracer.startSpan(`attempt ${ctx.task}`, { kind: SpanKind.CONSUMER, attributes: attributesOf(ctx) }, around);
  try {
    const answer = await context.with(trace.setSpan(around, span), next);
    span.setAttribute("pawl.outcome", "succeeded");
    return answer;
  } catch (error) {
    // To ask to be run later is no failure, nor is being stopped.
    const outcome = ctx.signal.aborted ? "aborted" : error instanceof Error && error.name === "Snooze" ? "snoozed" : "failed";
    span.setAttribute("pawl.outcome", outcome);
    if (outcome === "failed") fail(span, error);
    throw error;
  } finally {
    span.end();
  }
}

const SYSTEM = { "messaging.system": "pawl" } as const;

function attributesOf({ job, task, queue, tenant, attempt: number, worker, tick }: Context): Attributes {
  return {
    ...SYSTEM,
    "messaging.operation.name": "attempt",
    "messaging.operation.type": "process",
    "messaging.destination.name": queue,
    "messaging.message.id": job,
    "messaging.client.id": worker,
    "pawl.task": task,
    "pawl.tenant": tenant,
    "pawl.attempt": number,
    ...(tick === undefined ? {} : { "pawl.schedule": tick.schedule }),
  };
}

/** The class of what went wrong and its words; never inputs. */
function fail(span: Span, error: unknown): void {
  const thrown = error instanceof Error ? error : new Error(String(error));
  span.recordException(thrown);
  span.setStatus({ code: SpanStatusCode.ERROR, message: thrown.message });
}

function checkOptions(options: OtelOptions): OtelOptions {
  const { tracer, roots, ...rest } = options;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw optionInvalid(unknown, "there is no such option; there are tracer, roots");
  if (tracer !== undefined && typeof tracer.startSpan !== "function") throw optionInvalid("tracer", "it has no startSpan function");
  if (roots !== undefined && typeof roots !== "boolean") throw optionInvalid("roots", "it is neither true nor false");
  return options;
}

function optionInvalid(option: string, reason: string): PawlError {
  return pawlError("option_invalid", { option: `tracing.${option}`, reason });
}
