import { expect, test } from "vitest";
import { eventually } from "../support/eventually.js";
import { describeOn, migratedDatabase } from "../support/servers/servers.js";
import { TcpProxy } from "../support/servers/tcp-proxy.js";
import { ServiceProcess, serve } from "./service.js";

type LogLine = Readonly<Record<string, unknown>>;

const JSON_LINES = { PAWL_LOG_FORMAT: "json" };
const linesOf = ({ lines }: ServiceProcess) => lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line) as LogLine);
const requestsOf = (service: ServiceProcess) => linesOf(service).filter(({ event }) => event === "http.request");

async function addressOf(service: ServiceProcess): Promise<string> {
  await service.line(/"components: /);
  return /listening: (http[^"]+)/.exec(await service.line(/"listening: /))?.[1] as string;
}

test("`pawl serve` logs a line for each request, without being told to, and none is lost when it stops", { timeout: 180_000 }, async () => {
  await using service = serve("memory:", [], JSON_LINES);
  const address = await addressOf(service);
  const ids: (string | null)[] = [];
  for (let n = 0; n < 20; n++) ids.push((await fetch(`${address}/v1/jobs/none-${n}`)).headers.get("request-id"));
  ids.push((await fetch(`${address}/v1/jobs?task=hidden`)).headers.get("request-id"));
  await fetch(`${address}/livez`);
  service.signal("SIGTERM");
  expect(await service.exit()).toBe(0);
  const found = requestsOf(service);
  expect(found.map(({ requestId }) => requestId)).toEqual(ids);
  expect(found[7]).toMatchObject({
    level: "info",
    method: "GET",
    route: "/v1/jobs/{job}",
    path: "/v1/jobs/none-7",
    status: 404,
    code: "job_unknown",
    caller: "loopback",
    address: "127.0.0.1",
    msg: "GET /v1/jobs/none-7: 404 job_unknown",
  });
  expect(service.lines.join("\n")).not.toContain("hidden");
});

test("a line of a request ends where its path would begin another", { timeout: 180_000 }, async () => {
  await using service = serve("memory:", [], JSON_LINES);
  const address = await addressOf(service);
  await fetch(`${address}/v1/%0d%0a%1b[31m\u2028?token=abcdef`);
  await eventually("its line", async () => requestsOf(service).length === 1);
  expect(requestsOf(service)[0]).toMatchObject({ path: "/v1/%0d%0a%1b[31m%E2%80%A8", code: "request_malformed" });
});

test("`--log-requests false` leaves the lines of requests out", { timeout: 180_000 }, async () => {
  await using service = serve("memory:", ["--log-requests", "false"], JSON_LINES);
  const address = await addressOf(service);
  expect((await fetch(`${address}/v1/jobs/nothing`)).status).toBe(404);
  service.signal("SIGTERM");
  expect(await service.exit()).toBe(0);
  expect(requestsOf(service)).toEqual([]);
});

describeOn("embedded18", () => {
  test("a fault is logged as an error, with the id that its caller was given", { timeout: 180_000 }, async () => {
    await using database = await migratedDatabase();
    const wire = await TcpProxy.before(database.directConfig);
    try {
      await using service = serve(wire.url(database.name), [], JSON_LINES);
      const address = await addressOf(service);
      const job = await ServiceProcess.enqueue(address, "nobody.has", {});
      await wire.refuse();
      const refused = await eventually("a request that fails", async () => {
        const response = await fetch(`${address}/v1/jobs/${job}`);
        return response.status === 503 && response;
      });
      const { requestId } = (await refused.json()) as { requestId: string };
      const about = () => linesOf(service).filter((line) => line.requestId === requestId);
      await eventually("both lines", async () => about().length === 2);
      expect(about()).toMatchObject([
        { level: "error", route: "GET /v1/jobs/{job}", msg: expect.stringMatching(/^fault: GET \/v1\/jobs\/\{job\} \(req_/) },
        { level: "info", event: "http.request", status: 503, code: "store_unreachable" },
      ]);
    } finally {
      await wire.close();
    }
  });
});
