import type { AddressInfo } from "node:net";
import { open, type Pawl, task } from "pawl";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openApp, type TestApp } from "./support.ts";

interface ReceivedEvent {
  readonly id?: string;
  readonly event?: string;
  readonly data?: string;
}

/** A stream as a client reads it: `until` answers with all that came, once something did. */
class Listener {
  readonly events: ReceivedEvent[] = [];
  ended = false;
  #rest = "";
  #wake: () => void = () => {};

  constructor(
    readonly response: Response,
    readonly disconnect: AbortController,
  ) {
    void this.#read();
  }

  async until(what: (events: ReceivedEvent) => boolean): Promise<ReceivedEvent> {
    for (;;) {
      const found = this.events.find(what);
      if (found !== undefined) return found;
      if (this.ended) throw new Error("the stream ended before that");
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async untilEnd(): Promise<void> {
    while (!this.ended)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const bytes of this.response.body as unknown as AsyncIterable<Uint8Array>) {
        const blocks = (this.#rest + decoder.decode(bytes, { stream: true })).split("\n\n");
        this.#rest = blocks.pop() as string;
        for (const block of blocks) this.events.push(Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s).slice(0, 2))));
        this.#wake();
      }
    } catch {
      // It was cut off.
    }
    this.ended = true;
    this.#wake();
  }
}

describe("events over HTTP", () => {
  let api: TestApp;
  let pawl: Pawl;
  let address: string;
  beforeAll(async () => {
    pawl = await open("memory:", { tasks: [task("hello", async () => {})], allowUnknownTasks: true });
    await pawl.work();
    api = await openApp({ pawl, streams: { perCredential: 2 } });
    await api.app.listen({ host: "127.0.0.1", port: 0 });
    address = `http://127.0.0.1:${(api.app.server.address() as AddressInfo).port}/v1/events`;
  });
  afterAll(() => api[Symbol.asyncDispose]());

  const listen = async (key: string, query = "", last?: string) => {
    const disconnect = new AbortController();
    const headers = { authorization: `Bearer ${key}`, ...(last === undefined ? {} : { "last-event-id": last }) };
    const response = await fetch(address + query, { headers, signal: disconnect.signal });
    if (response.status !== 200) {
      await response.text();
      throw Object.assign(new Error(`status ${response.status}`), { status: response.status });
    }
    return new Listener(response, disconnect);
  };
  const settled = (tenant: string) => (events: ReceivedEvent) =>
    events.event === "attempt.settled" && (events.data as string).includes(`"tenant":"${tenant}"`);

  test("a tenant hears of its own jobs and of nobody else's", async () => {
    const [own, all] = [await listen("acme-viewer"), await listen("all-viewer")];
    await pawl.enqueue("hello", undefined, { tenant: "other" });
    await all.until(settled("other"));
    await pawl.enqueue("hello", undefined, { tenant: "acme" });
    const { data, id } = await own.until(settled("acme"));
    expect(JSON.parse(data as string)).toMatchObject({ outcome: "succeeded", lane: { task: "hello", tenant: "acme" } });
    expect(id).toMatch(/^[0-9a-f]+-\d+(\.\d+)?$/);
    expect(own.events.filter((one) => one.data?.includes("other"))).toEqual([]);
    expect(own.events.map(({ event }) => event)).not.toContain("jobs.claimed");
    for (const { disconnect } of [own, all]) disconnect.abort();
  });

  test("a stream that broke goes on after the event it saw last, or tells of a gap", async () => {
    const first = await listen("acme-operator", "?event=attempt.settled");
    const { id: job } = await pawl.enqueue("hello", undefined, { tenant: "acme" });
    const { id } = await first.until((one) => one.data?.includes(job) ?? false);
    first.disconnect.abort();
    const { id: missed } = await pawl.enqueue("hello", undefined, { tenant: "acme" });
    await pawl.jobs.wait(missed);
    const again = await listen("acme-operator", "?event=attempt.settled", id);
    await again.until((one) => one.data?.includes(missed) ?? false);
    expect(again.events.filter((one) => one.data?.includes(job) || one.event === "gap")).toEqual([]);
    again.disconnect.abort();
    // Of another time in which somebody listened, and of none at all: what is kept is told after the gap.
    for (const forgotten of ["000000000000-1", "nonsense"]) {
      const lateStream = await listen("acme-admin", "?event=attempt.settled", forgotten);
      await lateStream.until((one) => one.data?.includes(missed) ?? false);
      expect(lateStream.events.filter(({ event }) => event !== undefined)[0]?.event).toBe("gap");
      lateStream.disconnect.abort();
    }
  });

  test("what people do to jobs and queues is told, to those whose it is", async () => {
    const [own, all] = [await listen("acme-operator"), await listen("all-operator")];
    const { id: job } = await pawl.enqueue("nobody", undefined, { tenant: "acme", delay: "1h" });
    await pawl.jobs.cancel(job);
    await pawl.queues.pause("default");
    await pawl.queues.resume("default");
    const changed = await own.until(({ event }) => event === "job.changed");
    expect(JSON.parse(changed.data as string)).toMatchObject({ job, verb: "cancel", from: "scheduled", to: "cancelled", lane: { tenant: "acme" } });
    await all.until(({ event }) => event === "claims.resumed");
    expect(own.events.map(({ event }) => event)).not.toContain("claims.paused");
    for (const { disconnect } of [own, all]) disconnect.abort();
  });

  test("S19: a stream ends within seconds of its key", async () => {
    const stream = await listen("acme-viewer");
    api.callers.set("acme-viewer", { refused: "unauthenticated" });
    await stream.untilEnd();
    await expect(listen("acme-viewer")).rejects.toMatchObject({ status: 401 });
  });

  test("S65: a credential has so many streams and no more", async () => {
    const streams = [await listen("all-admin"), await listen("all-admin")];
    await expect(listen("all-admin")).rejects.toMatchObject({ status: 429 });
    for (const { disconnect } of streams) disconnect.abort();
    await expect
      .poll(
        () =>
          listen("all-admin").then(
            ({ disconnect }) => disconnect.abort(),
            () => "no",
          ),
        { timeout: 20_000 },
      )
      .not.toBe("no");
  });

  test("events that do not exist are told so", async () => {
    await expect(listen("all-admin", "?event=jobs.vanished")).rejects.toMatchObject({ status: 422 });
  });

  test("streams end with the service", async () => {
    const stream = await listen("all-operator");
    await api.app.close();
    await stream.untilEnd();
  });
});
