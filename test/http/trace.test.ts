import { AlwaysOffSampler, BasicTracerProvider, InMemorySpanExporter, ParentBasedSampler, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { type OpenOptions, open, task } from "pawl";
import { describe, expect, test } from "vitest";
import { otelRequests } from "../../packages/server/src/telemetry/traces/request-span.js";
import { otelTracing } from "../../packages/server/src/telemetry/traces/trace.js";
import { openApp, type TestApp } from "./support.js";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SAMPLED = `00-${TRACE}-b7ad6b7169203331-01`;
const UNSAMPLED = `00-${TRACE}-b7ad6b7169203331-00`;

function recorder(sampler?: ParentBasedSampler) {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({
    ...(sampler === undefined ? {} : { sampler }),
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  });
  const tracer = provider.getTracer("test");
  const find = (name: string) => exporter.getFinishedSpans().find((span) => span.name === name);
  return { jobs: otelTracing({ tracer }), requests: otelRequests(tracer), find, spans: () => exporter.getFinishedSpans() };
}

const work = task<number, void>("work", () => {});

/** Enqueues over HTTP, and answers with the trace that its job carries. */
async function enqueued({ request, pawl }: TestApp, headers: Readonly<Record<string, string>>, more: object = {}): Promise<string | undefined> {
  const answer = await request("POST", "/v1/jobs", { key: "acme-producer", body: { task: "work", input: 1, ...more }, headers });
  expect(answer.statusCode).toBe(201);
  return (await pawl.jobs.get(answer.json<{ id: string }>().id)).trace?.traceparent;
}

describe("the trace of a request", () => {
  test("goes with the job, if its caller records it, also where the service follows nothing", async () => {
    await using app = await openApp({ pawl: { tasks: [work] } });
    expect(await enqueued(app, { traceparent: SAMPLED })).toBe(SAMPLED);
    expect(await enqueued(app, { traceparent: UNSAMPLED })).toBeUndefined();
    expect(await enqueued(app, { traceparent: "nonsense" })).toBeUndefined();
    expect(await enqueued(app, {})).toBeUndefined();
    const own = `00-${"1".repeat(32)}-${"2".repeat(16)}-01`;
    expect(await enqueued(app, { traceparent: SAMPLED }, { trace: { traceparent: own } })).toBe(own);
  });

  test("goes with every job of a batch", async () => {
    await using app = await openApp({ pawl: { tasks: [work] } });
    for (const body of [
      { task: "work", inputs: [1, 2] },
      {
        jobs: [
          { task: "work", input: 1 },
          { task: "work", input: 2, priority: 9 },
        ],
      },
    ]) {
      const answer = await app.request("POST", "/v1/jobs/many", { key: "acme-producer", body, headers: { traceparent: SAMPLED } });
      for (const { id } of answer.json<{ results: { id: string }[] }>().results)
        expect((await app.pawl.jobs.get(id)).trace).toEqual({ traceparent: SAMPLED });
    }
  });

  test("holds the request, its enqueue and its attempts, each the child of the one before", async () => {
    const { jobs, requests, find } = recorder();
    const options: OpenOptions = { tasks: [work], tracing: jobs };
    await using app = await openApp({ pawl: options, tracing: requests });
    await enqueued(app, { traceparent: SAMPLED });
    const [job] = (await app.pawl.jobs.list()).items;
    const worker = await app.pawl.work();
    await app.pawl.jobs.wait(job?.id as string);
    await worker.stop();
    const [request, enqueue, attempt] = ["POST /v1/jobs", "enqueue work", "attempt work"].map(find);
    expect(request?.parentSpanContext?.spanId).toBe("b7ad6b7169203331");
    expect(enqueue?.parentSpanContext?.spanId).toBe(request?.spanContext().spanId);
    expect(attempt?.parentSpanContext?.spanId).toBe(enqueue?.spanContext().spanId);
    for (const span of [request, enqueue, attempt]) expect(span?.spanContext().traceId).toBe(TRACE);
    expect(request?.attributes).toMatchObject({
      "http.request.method": "POST",
      "http.route": "/v1/jobs",
      "http.response.status_code": 201,
      "pawl.tenant": "acme",
    });
  });

  test("is begun by a request that carries none, and decided on once: what the sampler leaves out is stored nowhere", async () => {
    let requestSpan = 0;
    const root = new (class extends AlwaysOffSampler {
      override shouldSample() {
        requestSpan++;
        return super.shouldSample();
      }
    })();
    const { jobs, requests, spans } = recorder(new ParentBasedSampler({ root }));
    await using app = await openApp({ pawl: { tasks: [work], tracing: jobs }, tracing: requests });
    expect(await enqueued(app, {})).toBeUndefined();
    expect(await enqueued(app, { traceparent: UNSAMPLED })).toBeUndefined();
    expect([requestSpan, spans()]).toEqual([1, []]);
  });

  test("is not begun by probes, by who waits for work, nor by who was not let in", async () => {
    const { requests, spans } = recorder();
    await using app = await openApp({ tracing: requests });
    await app.request("GET", "/livez");
    expect((await app.request("POST", "/v1/jobs", { key: "expired", body: { task: "work" } })).statusCode).toBe(401);
    const body = { worker: { name: "box", instance: "00000000-0000-4000-8000-000000000001" }, tasks: [{ name: "work" }], limit: 1, wait: 0 };
    expect((await app.request("POST", "/v1/leases/claim", { key: "all-worker", body })).statusCode).toBe(200);
    expect(spans()).toEqual([]);
  });

  test("is an error of the service only where that is at fault", async () => {
    const { requests, find } = recorder();
    await using app = await openApp({ tracing: requests });
    await app.request("GET", "/v1/jobs/0199ffff-ffff-7fff-bfff-ffffffffffff", { key: "acme-viewer" });
    expect(find("GET /v1/jobs/{job}")).toMatchObject({ status: { code: 0 }, attributes: { "http.response.status_code": 404 } });
  });
});

describe("a worker that pulls its jobs from a service", () => {
  test("links its attempts to the enqueue, also that of another process that speaks to the service", async () => {
    const [service, producing, working] = [recorder(), recorder(), recorder()];
    await using app = await openApp({ pawl: { tracing: service.jobs }, tracing: service.requests });
    const url = await app.app.listen({ host: "127.0.0.1", port: 0 });
    await using producer = await open(url, { apiKey: "all-producer", tracing: producing.jobs });
    const job = await producer.enqueue("work", 1);
    await using worker = await open(url, { apiKey: "all-worker", tasks: [work], tracing: working.jobs });
    await worker.work();
    await app.pawl.jobs.wait(job.id);
    await worker.close();
    const [requestSpan, stored, run] = [producing.find("enqueue work"), service.find("enqueue work"), working.find("attempt work")];
    expect(stored?.parentSpanContext?.spanId).toBe(requestSpan?.spanContext().spanId);
    expect(run?.parentSpanContext?.spanId).toBe(stored?.spanContext().spanId);
    expect(run?.spanContext().traceId).toBe(requestSpan?.spanContext().traceId);
  });

  test("refuses what is no tracing", async () => {
    await expect(open("http://127.0.0.1:1", { tracing: { enqueue: () => undefined } as never })).rejects.toMatchObject({ code: "option_invalid" });
  });
});
