import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { monotonic } from "../../child/clock.ts";
import { inParallel } from "../../child/jobs.ts";
import { Times } from "../../child/spread.ts";
import type { Spread, StoreLocation } from "../../contract/system.js";

export interface HttpRequest {
  readonly method?: "GET" | "POST";
  readonly path: string;
  readonly key?: string;
  readonly body?: unknown;
}

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** A client that keeps its connections; nothing in it is cleverer than what anybody would write. */
export class HttpClient {
  readonly #agent: Agent;

  constructor(
    private readonly url: string,
    connections: number,
  ) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  ask({ method = "GET", path, key, body }: HttpRequest): Promise<HttpAnswer> {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    const headers = {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(payload === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(payload) }),
    };
    return new Promise((resolve, reject) => {
      const sent = request(`${this.url}${path}`, { method, headers, agent: this.#agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
        response.on("error", reject);
      });
      sent.on("error", reject);
      sent.end(payload);
    });
  }

  /** So many of the same, so many at a time; all must go well. */
  async repeat(count: number, inFlight: number, httpRequest: HttpRequest): Promise<Spread & { readonly perSecond: number }> {
    const times = new Times();
    const began = monotonic();
    await inParallel(Array.from({ length: count }), inFlight, async () => {
      const sentAt = monotonic();
      const { status, text } = await this.ask(httpRequest);
      if (status >= 400) throw new Error(`${httpRequest.path} was answered with ${status}: ${text}`);
      times.add(monotonic() - sentAt);
    });
    return { ...times.spread(), perSecond: (count / (monotonic() - began)) * 1_000 };
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** A job to ask for. */
export async function newJob(client: HttpClient, key?: string): Promise<string> {
  const { text } = await client.ask({
    method: "POST",
    path: "/v1/jobs",
    body: { task: "asked.for", input: { n: 1 }, delay: "1d" },
    ...(key === undefined ? {} : { key }),
  });
  return (JSON.parse(text) as { readonly id: string }).id;
}

export function postgresUrl(location: StoreLocation): string {
  if (location.kind !== "postgres") throw new Error("the service is measured on Postgres");
  return location.url;
}

/** bytes that a process has in memory, by the kernel */
export function rssOf(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) * 1_024;
}
