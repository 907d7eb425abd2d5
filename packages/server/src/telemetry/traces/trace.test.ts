import { context, type Span, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { isPawlError, Snooze, task } from "pawl";
import { openTest } from "pawl/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type OtelOptions, otelTracing } from "./trace.js";
import { contextOf, traceContextOf } from "./w3c.js";

beforeAll(() => void context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()));
afterAll(() => context.disable());

function recorder(sampler: Sampler = new AlwaysOnSampler()) {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({
    sampler: new ParentBasedSampler({ root: sampler }),
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  });
  return { tracer: provider.getTracer("test"), spans: () => exporter.getFinishedSpans() };
}

const spansNamed = (spans: readonly ReadableSpan[], name: string) => spans.filter((span) => span.name === name);

describe("with OpenTelemetry", () => {
  test("an enqueue and every attempt are one trace, the attempts children of the enqueue", async () => {
    const { tracer, spans } = recorder();
    let tries = 0;
    const flaky = task<number, void>("flaky", () => {
      if (tries++ === 0) throw new RangeError("not yet");
    });
    await using world = await openTest({ tasks: [flaky], tracing: otelTracing({ tracer }) });
    const job = await world.pawl.enqueue(flaky, 1, { tenant: "acme" });
    await world.drain();
    const [enqueue] = spansNamed(spans(), "enqueue flaky");
    const attempts = spansNamed(spans(), "attempt flaky");
    expect(enqueue).toMatchObject({ kind: SpanKind.PRODUCER, attributes: { "messaging.system": "pawl", "messaging.message.id": job.id } });
    expect(attempts.map(({ attributes }) => [attributes["pawl.attempt"], attributes["pawl.outcome"]])).toEqual([
      [1, "failed"],
      [2, "succeeded"],
    ]);
    for (const attempt of attempts) {
      expect(attempt.kind).toBe(SpanKind.CONSUMER);
      expect(attempt.spanContext().traceId).toBe(enqueue?.spanContext().traceId);
      expect(attempt.parentSpanContext).toMatchObject({ spanId: enqueue?.spanContext().spanId, isRemote: true });
      expect(attempt.attributes).toMatchObject({ "messaging.message.id": job.id, "messaging.destination.name": "default", "pawl.tenant": "acme" });
    }
    expect(attempts[0]?.status).toEqual({ code: SpanStatusCode.ERROR, message: "not yet" });
    expect(attempts[1]?.status.code).toBe(SpanStatusCode.UNSET);
  });

  test("the enqueue is part of what the caller was doing, and what a handler does is part of its attempt", async () => {
    const { tracer, spans } = recorder();
    const child = task<number, void>("child", () => {});
    const parent = task<number, void>("parent", async () => {
      tracer.startSpan("query").end();
      await world.pawl.enqueue(child, 1);
    });
    await using world = await openTest({ tasks: [parent, child], tracing: otelTracing({ tracer }) });
    await tracer.startActiveSpan("request", async (request: Span) => {
      await world.pawl.enqueue(parent, 1);
      request.end();
    });
    await world.drain();
    const idOf = (name: string) => spansNamed(spans(), name)[0]?.spanContext().spanId;
    const parentOf = (name: string) => spansNamed(spans(), name)[0]?.parentSpanContext?.spanId;
    expect(parentOf("enqueue parent")).toBe(idOf("request"));
    expect(parentOf("query")).toBe(idOf("attempt parent"));
    expect(parentOf("enqueue child")).toBe(idOf("attempt parent"));
    expect(parentOf("attempt child")).toBe(idOf("enqueue child"));
    expect(new Set(spans().map((span) => span.spanContext().traceId)).size).toBe(1);
  });

  test("a trace that came with a request from elsewhere goes on, with its state", async () => {
    const { tracer, spans } = recorder();
    const work = task<number, void>("work", () => {});
    await using world = await openTest({ tasks: [work], tracing: otelTracing({ tracer }) });
    const traceContext = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate: "vendor=x" };
    const job = await world.pawl.enqueue(work, 1, { trace: traceContext });
    await world.drain();
    const [enqueue] = spansNamed(spans(), "enqueue work");
    expect(enqueue?.spanContext().traceId).toBe("0af7651916cd43dd8448eb211c80319c");
    expect(enqueue?.parentSpanContext?.spanId).toBe("b7ad6b7169203331");
    expect((await job.get()).trace).toEqual({
      traceparent: expect.stringContaining(enqueue?.spanContext().spanId as string),
      tracestate: "vendor=x",
    });
    expect(spansNamed(spans(), "attempt work")[0]?.spanContext().traceId).toBe("0af7651916cd43dd8448eb211c80319c");
  });

  test("what is not sampled leaves nothing on the job, and its attempts are not followed", async () => {
    const { tracer, spans } = recorder(new AlwaysOffSampler());
    const work = task<number, void>("work", () => {});
    await using world = await openTest({ tasks: [work], tracing: otelTracing({ tracer }) });
    const job = await world.pawl.enqueue(work, 1);
    await world.drain();
    expect((await job.get()).trace).toBeUndefined();
    expect(spans()).toEqual([]);
  });

  test("attempts at jobs that carry no trace begin one if that is asked for, and those of schedules always do", async () => {
    const { tracer, spans } = recorder();
    const work = task<number, void>("work", () => {});
    for (const [roots, expected] of [
      [false, 0],
      [true, 1],
    ] as const) {
      const before = spans().length;
      await using world = await openTest({ tasks: [work], work: false });
      await world.pawl.enqueue(work, 1);
      await world.pawl.work({ middleware: [otelTracing({ tracer, roots }).attempt] });
      await world.drain();
      expect(spans().length - before).toBe(expected);
    }
    await using world = await openTest({ tasks: [work], tracing: otelTracing({ tracer }) });
    await world.pawl.schedules.put("nightly", work, { every: "1h", input: 1 });
    await world.advance("61m");
    expect(spans().at(-1)?.attributes).toMatchObject({ "pawl.task": "work", "pawl.schedule": "nightly" });
    expect(spans().at(-1)?.parentSpanContext).toBeUndefined();
  });

  test("to be run later is no failure", async () => {
    const { tracer, spans } = recorder();
    let tries = 0;
    const patient = task<number, void>("patient", () => {
      if (tries++ === 0) throw new Snooze("1s");
    });
    await using world = await openTest({ tasks: [patient], tracing: otelTracing({ tracer }) });
    await world.pawl.enqueue(patient, 1);
    await world.drain();
    const [first] = spansNamed(spans(), "attempt patient");
    expect(first).toMatchObject({ attributes: { "pawl.outcome": "snoozed" }, status: { code: SpanStatusCode.UNSET } });
  });

  test("an enqueue that fails says why", async () => {
    const { tracer, spans } = recorder();
    const work = task<number, void>("work", () => {});
    await using world = await openTest({ tasks: [work], tracing: otelTracing({ tracer }), work: false });
    await expect(world.pawl.enqueue(work, 1, { delay: -1 })).rejects.toThrow();
    expect(spans()[0]?.status.code).toBe(SpanStatusCode.ERROR);
  });

  test("without an SDK nothing is stored and nothing is lost", async () => {
    const work = task<number, void>("work", () => {});
    await using world = await openTest({ tasks: [work], tracing: otelTracing() });
    const job = await world.pawl.enqueue(work, 1);
    expect((await world.drain()).succeeded).toBe(1);
    expect((await job.get()).trace).toBeUndefined();
  });

  test.each<[string, object]>([
    ["a misspelt option", { root: true }],
    ["a tracer that is none", { tracer: {} }],
    ["a word for yes", { roots: "yes" }],
  ])("refuses %s", (_, options) => {
    expect(() => otelTracing(options as OtelOptions)).toThrow(expect.toSatisfy((error) => isPawlError(error, "option_invalid")));
  });
});

describe("W3C Trace Context", () => {
  test.each([
    [{ traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" }],
    [{ traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", tracestate: "a=1,b=2" }],
  ])("is the same after a journey: %o", (traceContext) => {
    const span = trace.getSpanContext(contextOf(traceContext));
    expect(span).toMatchObject({ isRemote: true });
    expect(span && traceContextOf(span)).toEqual(traceContext);
  });
});
