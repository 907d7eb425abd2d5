import type { Middleware } from "../../core/jobs/context.js";
import type { JobId } from "../../core/jobs/id.js";
import { isSampled, type TraceContext } from "../../core/observe/trace.js";
import { checkFunction, checkKeys, checkObject } from "../../core/values/option.js";

/**
 * What follows jobs from their enqueue through every attempt, in whatever process. The library knows no tracer: it
 * stores the context and hands it back. `pawl-server/telemetry` has one for OpenTelemetry.
 */
export interface Tracing {
  /** An enqueue begins. Undefined: it is not followed, and costs nothing more. */
  enqueue(what: TracedEnqueue): EnqueueSpan | undefined;
  /** Around every attempt, outside all other middleware. `ctx.trace` is what its job carries. */
  readonly attempt: Middleware;
}

export interface TracedEnqueue {
  readonly task: string;
  readonly verb: "enqueue" | "enqueueMany" | "enqueueStream" | "enqueueAll";
  /** what the caller gave as `trace`; absent: whatever the tracer takes for the current context */
  readonly parent?: TraceContext;
}

export interface EnqueueSpan {
  /** stored with each of its jobs */
  readonly trace: TraceContext;
  end(answer: { readonly jobs: number; readonly job?: JobId } | { readonly error: unknown }): void;
}

const KEYS: ReadonlySet<string> = new Set(["enqueue", "attempt"] satisfies readonly (keyof Tracing)[]);

export function checkTracing(tracing: Tracing): Tracing {
  checkKeys(checkObject("tracing", tracing), KEYS, "tracing.");
  checkFunction("tracing.enqueue", tracing.enqueue);
  checkFunction("tracing.attempt", tracing.attempt);
  return tracing;
}

/**
 * Makes the call inside a span, with the span's context among its options, if the tracer wants it so. A parent that is not
 * recorded kept the tracer from asking its sampler anew; it is not stored.
 */
export async function withSpan<Options extends { readonly trace?: TraceContext }, Answer>(
  tracing: Tracing | undefined,
  what: Pick<TracedEnqueue, "task" | "verb">,
  options: Options | undefined,
  call: (options: Options | undefined) => Promise<Answer>,
  describe: (answer: Answer) => { readonly jobs: number; readonly job?: JobId },
): Promise<Answer> {
  const parent = options?.trace;
  const span = tracing?.enqueue(parent === undefined ? what : { ...what, parent });
  if (span === undefined) {
    if (tracing === undefined || parent === undefined || isSampled(parent)) return call(options);
    const { trace: _, ...rest } = options as Options;
    return call(rest as Options);
  }
  try {
    const answer = await call({ ...(options as Options), trace: span.trace });
    span.end(describe(answer));
    return answer;
  } catch (error) {
    span.end({ error });
    throw error;
  }
}

/** What follows jobs stands around everything else that does. What is wrong with the others is found where they are read. */
export function withTracingMiddleware<Options extends { readonly middleware?: readonly Middleware[] }>(
  options: Options,
  tracing: Tracing | undefined,
): Options {
  const { middleware = [] } = options;
  return tracing === undefined || !Array.isArray(middleware) ? options : { ...options, middleware: [tracing.attempt, ...middleware] };
}
