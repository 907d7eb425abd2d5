import { afterEach, expect, test } from "vitest";
import { eventually } from "../../../../../../test/support/eventually.js";
import type { LeaseId } from "../../../core/jobs/id.js";
import type { Renewer } from "../../port/settle/leases.js";
import { findPg } from "../drivers/pg-module.js";
import { RENEW } from "./renew-statement.js";
import { type RenewalData, threadRenewer } from "./renewer.js";

let renewer: Renewer | undefined;
afterEach(() => renewer?.stop());

/** What it says of its trouble, as it says it. */
function renewing(data: () => Promise<RenewalData>): readonly { readonly code: string; readonly message: string }[] {
  const troubles: { code: string; message: string }[] = [];
  renewer = threadRenewer(data);
  renewer.onTrouble?.((error) => troubles.push(error as { code: string; message: string }));
  return troubles;
}

test("a thread that cannot be started is tried again, and every failure told with its code and reason", async () => {
  let asked = 0;
  const troubles = renewing(() => {
    asked++;
    return Promise.reject(new Error("there are no threads here"));
  });
  await eventually("it was tried again", () => asked >= 3);
  expect(troubles[0]).toMatchObject({ code: "renewal_failed", message: expect.stringContaining("there are no threads here") });
});

test("renewals that never reach the store are told, with what keeps them from it", async () => {
  const nowhere = { host: "127.0.0.1", port: 1, user: "nobody", database: "nothing" };
  const troubles = renewing(async () => ({
    link: { kind: "pg", file: findPg(), config: nowhere },
    statement: RENEW.statement,
    worker: 1,
    duration: 300,
    every: 100,
  }));
  await renewer?.ready;
  expect(troubles).toEqual([]);
  renewer?.hold("1" as LeaseId, performance.now() + 60_000);
  const first = await eventually("the trouble is told", () => troubles[0]);
  expect(first).toMatchObject({ code: "renewal_failed", message: expect.stringContaining("ECONNREFUSED") });
});
