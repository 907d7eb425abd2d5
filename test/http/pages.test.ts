import { open, type Pawl, task } from "pawl";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openApp, type TestApp } from "./support.ts";

const LARGE = "x".repeat(900_000);

describe("answers over HTTP", () => {
  let api: TestApp;
  let pawl: Pawl;
  beforeAll(async () => {
    const talk = task("talk", async (n: number, ctx) => {
      for (let line = 0; line < n; line++) ctx.log.info(`line ${line}`);
    });
    pawl = await open("memory:", { tasks: [talk], allowUnknownTasks: true, maintenance: false });
    api = await openApp({ pawl });
  });
  afterAll(() => api[Symbol.asyncDispose]());

  test("are bounded by bytes as by count, and say where the next one begins (S30)", async () => {
    await pawl.enqueueMany("large", Array(12).fill(LARGE));
    const sizes: number[] = [];
    const seen = new Set<string>();
    let cursor = "";
    do {
      const answer = await api.request("GET", `/v1/jobs?task=large&limit=1000${cursor}`);
      const { items: jobs, next } = answer.json() as { items: readonly { id: string }[]; next?: string };
      sizes.push(answer.body.length);
      for (const { id } of jobs) seen.add(id);
      cursor = next === undefined ? "" : `&cursor=${next}`;
    } while (cursor !== "");
    expect(seen.size).toBe(12);
    expect(sizes.length).toBeGreaterThan(2);
    expect(Math.max(...sizes)).toBeLessThan(5_500_000);
  });

  test("of log lines and histories come in parts", async () => {
    const worker = await pawl.work({ tasks: ["talk"] });
    const { id } = await pawl.enqueue("talk", 7);
    await pawl.jobs.wait(id, "30s");
    await worker.stop();
    const get = async (query: string) => (await api.request("GET", `/v1/jobs/${id}/${query}`)).json();
    const first = await get("logs?limit=5");
    expect(first.items.map(({ message }: { message: string }) => message)).toEqual(["line 0", "line 1", "line 2", "line 3", "line 4"]);
    const second = await get(`logs?limit=5&cursor=${first.next}`);
    expect(second.items).toHaveLength(2);
    expect(second.next).toBeUndefined();
    expect(await get("history?limit=1")).toEqual({ items: [expect.objectContaining({ outcome: "succeeded" })] });
    expect((await pawl.jobs.logs(id)).items.length).toBe(7);
    for (const cursor of ["-1", first.next.slice(2), (await get("logs?limit=1")).next.toUpperCase()])
      expect((await api.request("GET", `/v1/jobs/${id}/logs?cursor=${cursor}`)).statusCode, cursor).toBe(422);
    expect((await api.request("GET", `/v1/jobs/${id}/history?cursor=${first.next}`)).statusCode, "a cursor of another list").toBe(422);
    await expect(pawl.jobs.logs(id, { cursor: "x" })).rejects.toMatchObject({ code: "option_invalid" });
    await expect(pawl.jobs.history(id, { limit: 1_001 })).rejects.toMatchObject({ code: "option_invalid" });
  });
});
