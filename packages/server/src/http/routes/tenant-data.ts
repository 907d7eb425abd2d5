import { exportTenant, purgeTenant } from "../contract/tenant-data.js";
import { on, Raw } from "../handler.js";
import { askPurge } from "../purge-task.js";
import { enqueuedAnswer } from "./jobs.js";

export const tenantData = [
  on(exportTenant, async (call) => {
    const { pawl, params, parts } = call;
    return new Raw("application/x-ndjson; charset=utf-8", await parts.exports.stream(call, () => pawl.tenants.export(params.tenant)));
  }),
  on(purgeTenant, async ({ pawl, params }) => enqueuedAnswer(await askPurge(pawl, params.tenant))),
];
