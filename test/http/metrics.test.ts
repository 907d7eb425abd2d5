import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type NewAudit, open } from "pawl";
import { expect, test } from "vitest";
import { apiRouting, healthRouting } from "../../packages/server/src/serve/routing.ts";
import { accessOf, principals } from "./support.ts";

test.each([
  ["with an API", apiRouting],
  ["without one", healthRouting],
])("metrics of a process %s are for who may see all tenants, and the audit hears of others", async (_, routingOf) => {
  const pawl = await open("memory:", { maintenance: false });
  const told: NewAudit[] = [];
  const audit = {
    async record(entry: NewAudit) {
      told.push(entry);
    },
  };
  const { handler, close } = await routingOf({ pawl, access: accessOf(principals()), audit });
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const get = (key: string) => fetch(`${address}/metrics`, { headers: { authorization: `Bearer ${key}`, connection: "close" } });
  try {
    const shown = await get("all-viewer");
    expect([shown.status, shown.headers.get("content-type")]).toEqual([200, expect.stringMatching(/^text\/plain; version=/)]);
    expect(await shown.text()).toContain("pawl_attempts_settled_total");
    const limited = await get("too-often");
    expect([limited.status, limited.headers.get("retry-after")]).toEqual([429, "3"]);
    expect([(await get("acme-admin")).status, (await get("expired")).status]).toEqual([403, 401]);
    expect(told.map(({ actor, action, details }) => [actor, action, details?.reason])).toEqual([
      ["acme-admin", "metrics", "forbidden"],
      ["anonymous", "metrics", "unauthenticated"],
    ]);
  } finally {
    server.close();
    await close();
    await pawl.close();
  }
});
