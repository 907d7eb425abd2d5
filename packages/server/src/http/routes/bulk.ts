import { BULK_TASK, checkBulk } from "../bulk-task.js";
import { startBulk } from "../contract/bulk.js";
import { on, tenantOf } from "../handler.js";
import { enqueuedAnswer } from "./jobs.js";

export const bulk = [
  on(startBulk, async ({ body, pawl, principal, requestId }) => {
    checkBulk(body);
    const { filter, ...input } = body;
    const { tenant: asked, ...rest } = filter;
    const tenant = tenantOf(principal, asked);
    const request = requestId === undefined ? {} : { request: requestId };
    return enqueuedAnswer(await pawl.as({ tenant }).enqueue(BULK_TASK, { ...input, filter: rest }, request));
  }),
];
