import { expect, test } from "vitest";
import { serviceOf } from "../../packages/pawl/src/service.js";
import { openApp, type TestApp } from "./support.ts";

const auditEntry = (actor: string, tenant?: string) => ({ tenant, actor, action: "jobs.cancel", outcome: "allowed" as const });

async function verified(api: TestApp, anchors?: readonly unknown[]): Promise<Record<string, unknown>> {
  return (await api.request("POST", "/v1/audit/verify", anchors === undefined ? {} : { body: { anchors } })).json();
}

test("a log that was verified without anchors says what that does not find, over HTTP as at the command line", async () => {
  await using api = await openApp();
  const none = /^without anchors, an end that was cut off together with its head is not found/;
  expect(await verified(api), "of no log at all").toMatchObject({ ok: true, chains: 0, caveat: expect.stringMatching(none) });
  await serviceOf(api.pawl).audit.record(auditEntry("ann"));
  await serviceOf(api.pawl).audit.record(auditEntry("bob", "acme"));
  expect(await verified(api)).toMatchObject({ ok: true, chains: 2, caveat: expect.stringMatching(none) });
  expect(await verified(api, [])).toMatchObject({ caveat: expect.stringMatching(none) });

  const heads = await serviceOf(api.pawl).audit.heads();
  const anchors = heads.map(({ tenant, seq, hash }) => ({ ...(tenant === undefined ? {} : { tenant }), seq, hash }));
  expect(await verified(api, anchors)).toEqual({ ok: true, chains: 2, entries: 2, faults: [] });
  expect(await verified(api, anchors.slice(0, 1))).toMatchObject({
    ok: true,
    caveat: expect.stringMatching(/^of 1 of 2 logs, which have no anchor, /),
  });
});
