import { task } from "pawl";
import { expect, test } from "vitest";
import { openApp } from "./support.ts";

const broken = task("broken", { retry: 0 }, () => {
  throw new TypeError("it is broken", { cause: new Error("so is this") });
});

test("a tenant sees which line of a handler threw, and nothing of where the server keeps its code; an operator sees that, too", async () => {
  await using api = await openApp({ pawl: { tasks: [broken] } });
  await api.pawl.work();
  const job = await api.pawl.enqueue(broken, undefined, { tenant: "acme" });
  await api.pawl.jobs.wait(job);
  const here = import.meta.dirname;
  const ways = [
    ["GET", `/v1/jobs/${job.id}`],
    ["GET", `/v1/jobs/${job.id}?wait=30s`],
    ["GET", `/v1/jobs/${job.id}/history`],
    ["GET", `/v1/jobs/${job.id}/explain`],
    ["GET", "/v1/jobs"],
    ["GET", "/v1/dead"],
    ["GET", "/v1/dead/groups"],
    ["GET", "/v1/tenants/acme/export"],
  ] as const;
  for (const [method, url] of ways) {
    const seen = await api.request(method, url, { key: "acme-admin" });
    expect([seen.statusCode, url]).toEqual([200, url]);
    expect(seen.body, url).toContain("stacks.test.ts:");
    expect(seen.body, url).not.toContain(here);
    expect(seen.body, url).not.toMatch(/file:\/\/|[(" ]\/\w/);
  }
  for (const [method, url] of ways.slice(0, -1)) expect((await api.request(method, url, { key: "all-viewer" })).body, url).toContain(here);
});
