import { finished } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { EnqueueItem, Scheduler } from "pawl";
import { type EnqueueAllOptions, isSampled, type TraceContext, traceOfHeaders } from "pawl/service";
import type { AnyRoute } from "../contract/route.js";

/** What follows requests. The API knows no tracer, as the library knows none: `telemetry/traces/request-span.ts` has one. */
export interface RequestTracing {
  begin(what: TracedRequest): RequestSpan;
}

export interface TracedRequest {
  readonly method: string;
  /** the path as the contract has it, without anybody's names in it */
  readonly path: string;
  readonly request: string;
  readonly tenant: string | undefined;
  /** what the caller's headers carry */
  readonly parent: TraceContext | undefined;
}

export interface RequestSpan {
  readonly trace: TraceContext;
  end(status: number): void;
}

/**
 * The trace that a request, and what it enqueues, belongs to: that of its span, where there is a tracer; else its caller's,
 * if anybody records that.
 */
export function requestTrace(
  tracing: RequestTracing | undefined,
  route: AnyRoute,
  tenant: string | undefined,
  request: FastifyRequest,
  reply: FastifyReply,
): TraceContext | undefined {
  const parent = traceOfHeaders(request.headers);
  if (tracing === undefined || !isTraced(route)) return parent !== undefined && isSampled(parent) ? parent : undefined;
  const span = tracing.begin({ method: route.method, path: route.path, request: request.id, tenant, parent });
  finished(reply.raw, () => span.end(reply.raw.statusCode));
  return span.trace;
}

/** Not those that wait for work or for news, which last as long as they like, nor those that only look after the service. */
function isTraced({ policy, path }: AnyRoute): boolean {
  return !("open" in policy) && policy.action !== "leases.write" && policy.action !== "events.read" && path.startsWith("/v1/");
}

/** The same scheduler, whose jobs are of this trace unless they say otherwise. */
export function inTrace(scheduler: Scheduler, trace: TraceContext | undefined): Scheduler {
  if (trace === undefined) return scheduler;
  const { jobs, dead, schedules } = scheduler;
  const under = <Options extends object>(options: Options | undefined) => ({ trace, ...options });
  return {
    jobs,
    dead,
    schedules,
    enqueue: (task: string, input: unknown, options?: object) => scheduler.enqueue(task, input, under(options)),
    call: (task: string, input: unknown, options?: object) => scheduler.call(task, input, under(options)),
    enqueueMany: (task: string, inputs: readonly unknown[], options?: object) => scheduler.enqueueMany(task, inputs, under(options)),
    enqueueAll: (batch: readonly EnqueueItem[], options?: EnqueueAllOptions) => scheduler.enqueueAll(batch, under(options)),
    enqueueStream: (task: string, inputs: Iterable<unknown>, options?: object) => scheduler.enqueueStream(task, inputs, under(options)),
    counts: (of) => scheduler.counts(of),
    forTenant: (tenant) => inTrace(scheduler.forTenant(tenant), trace),
  } as Scheduler;
}
