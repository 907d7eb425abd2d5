import { Readable } from "node:stream";
import type { ExportEntry } from "pawl";
import { exportTenant, purgeTenant } from "../contract/tenant-data.js";
import { on, Raw } from "../handler.js";
import { askPurge } from "../purge-task.js";
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
  on(purgeTenant, async ({ pawl, params }) => enqueuedAnswer(await askPurge(pawl, params.tenant))),
];
