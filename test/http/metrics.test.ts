import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { open } from "pawl";
import type { NewAudit } from "pawl/service";
import { expect, test } from "vitest";
import { apiRouter, healthRouter } from "../../packages/server/src/run/router.ts";
import { accessOf, principals } from "./support.ts";

test.each([
  ["with an API", apiRouter],
  ["without one", healthRouter],
])("metrics of a process %s are for who may see all tenants, and the audit hears of others", async (_, routingOf) => {
  const pawl = await open("memory:", { maintenance: false });
  const auditEntries: NewAudit[] = [];
  const audit = {
    async record(entry: NewAudit) {
      auditEntries.push(entry);
    },
  };
  const { handler, close } = await routingOf({ pawl, access: accessOf(principals()), audit });
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const get = (key: string) => fetch(`${address}/metrics`, { headers: { authorization: `Bearer ${key}`, connection: "close" } });
  try {
    const metrics = await get("all-viewer");
    expect([metrics.status, metrics.headers.get("content-type")]).toEqual([200, expect.stringMatching(/^text\/plain; version=/)]);
    expect(await metrics.text()).toContain("pawl_attempts_settled_total");
    const limited = await get("too-often");
    expect([limited.status, limited.headers.get("retry-after")]).toEqual([429, "3"]);
    expect([(await get("acme-admin")).status, (await get("expired")).status]).toEqual([403, 401]);
    expect(auditEntries.map(({ actor, action, details }) => [actor, action, details?.reason])).toEqual([
      ["acme-admin", "metrics", "forbidden"],
      ["anonymous", "metrics", "unauthenticated"],
    ]);
  } finally {
    server.close();
    await close();
    await pawl.close();
  }
});
