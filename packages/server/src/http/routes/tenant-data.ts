import { exportTenant, purgeTenant } from "../contract/operate/tenant-data.js";
import { on, RawAnswer } from "../handler.js";
import { enqueuePurge } from "../tasks/purge-task.js";
import { enqueuedAnswer } from "./jobs.js";

export const tenantData = [
  on(exportTenant, async (call) => {
    const { pawl, params, deps } = call;
    return new RawAnswer("application/x-ndjson; charset=utf-8", await deps.exports.stream(call, () => pawl.tenants.export(params.tenant)));
  }),
  on(purgeTenant, async ({ pawl, params }) => enqueuedAnswer(await enqueuePurge(pawl, params.tenant))),
];
