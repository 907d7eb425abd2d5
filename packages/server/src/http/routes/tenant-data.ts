import { Readable } from "node:stream";
import { type ExportEntry, OWN_TENANT } from "pawl";
import { exportTenant, purgeTenant } from "../contract/tenant-data.js";
import { on, Raw } from "../handler.js";
import { PURGE_TASK } from "../purge-task.js";
import { enqueuedAnswer } from "./jobs.js";

async function* lines(first: IteratorResult<ExportEntry, void>, rest: AsyncIterator<ExportEntry, void>): AsyncGenerator<string> {
  for (let entry = first; entry.done !== true; entry = await rest.next()) yield `${JSON.stringify(entry.value)}\n`;
}

export const tenantData = [
  on(exportTenant, async ({ pawl, params }) => {
    const entries = pawl.tenants.export(params.tenant)[Symbol.asyncIterator]();
    // What is wrong from the start is an answer; later it can only be a stream without an end.
    const first = await entries.next();
    return new Raw("application/x-ndjson; charset=utf-8", Readable.from(lines(first, entries)));
  }),
  on(purgeTenant, async ({ pawl, params, requestId }) => {
    const request = requestId === undefined ? {} : { request: requestId };
    const purge = await pawl.tenants.askPurge(params.tenant);
    // By its key: one that was asked for and got no job, or whose job died, gets one when it is asked for again.
    return enqueuedAnswer(await pawl.as({ tenant: OWN_TENANT }).enqueue(PURGE_TASK, { purge }, { key: purge, ...request }));
  }),
];
