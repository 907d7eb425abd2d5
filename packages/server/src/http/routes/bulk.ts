import { startBulk } from "../contract/jobs/bulk.js";
import { on, tenantOf } from "../handler.js";
import { BULK_TASK, checkBulk } from "../tasks/bulk-task.js";
import { enqueuedAnswer } from "./jobs.js";

export const bulk = [
  on(startBulk, async ({ body, pawl, principal, idempotencyKey }) => {
    checkBulk(body);
    const { filter, ...input } = body;
    const { tenant: requested, ...rest } = filter;
    const tenant = tenantOf(principal, requested);
    const keyed = idempotencyKey === undefined ? {} : { idempotencyKey };
    return enqueuedAnswer(await pawl.forTenant(tenant).enqueue(BULK_TASK, { ...input, filter: rest }, keyed));
  }),
];
