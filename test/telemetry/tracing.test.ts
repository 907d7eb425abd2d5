import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { open, task } from "pawl";
import { expect, test } from "vitest";
import { otelTracing } from "../../packages/server/src/telemetry/traces/trace.js";
import { describeOn, migratedDatabase, type ServerName } from "../support/servers/servers.js";

/** What a process of its own would have. */
function tracerOf(service: string) {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  return { tracing: otelTracing({ tracer: provider.getTracer(service) }), spans: () => exporter.getFinishedSpans() };
}

for (const server of ["embedded18", "debian15"] satisfies ServerName[]) {
  describeOn(server, () => {
    test("attempts at jobs are linked to the enqueue by another pawl, with another tracer, one by one and in bulk", async () => {
      await using database = await migratedDatabase(server);
      const work = task<number, number>("work", (n) => n);
      const [producing, working] = [tracerOf("producer"), tracerOf("worker")];
      await using producer = await open(database.url, { tracing: producing.tracing, maintenance: false });
      await using worker = await open(database.url, { tasks: [work], tracing: working.tracing });
      const one = await producer.enqueue("work", 1);
      const many = await producer.enqueueMany("work", [2, 3, 4]);
      await worker.work();
      await Promise.all([one, ...many].map((job) => job.result()));
      await worker.close();
      const enqueues = producing.spans();
      expect(enqueues.map(({ attributes }) => attributes["messaging.operation.name"])).toEqual(["enqueue", "enqueueMany"]);
      expect(producing.spans().every(({ name }) => name === "enqueue work")).toBe(true);
      const parents = new Map(working.spans().map((span) => [span.attributes["messaging.message.id"], span.parentSpanContext?.spanId]));
      expect(parents.get(one.id)).toBe(enqueues[0]?.spanContext().spanId);
      for (const job of many) expect(parents.get(job.id)).toBe(enqueues[1]?.spanContext().spanId);
    });
  });
}
