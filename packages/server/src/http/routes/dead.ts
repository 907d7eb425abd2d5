import { isPawlError } from "pawl";
import type { BulkReport } from "pawl/service";
import { type BulkAnswer, countDead, deadGroups, deleteDead, listDead, redriveDead } from "../contract/jobs/dead.js";
import { filterAndPage, on } from "../handler.js";

const MAX_JOBS = 1_000;

function reportOf({ failures, ...report }: BulkReport): BulkAnswer {
  return { ...report, failures: failures.map(({ job, error }) => ({ job, error: isPawlError(error) ? error.code : "internal" })) };
}

export const dead = [
  on(listDead, ({ query, scheduler }) => scheduler.dead.list(...filterAndPage(query))),
  on(countDead, async ({ query, scheduler }) => ({ count: await scheduler.dead.count(query) })),
  on(deadGroups, ({ query, scheduler }) => scheduler.dead.groups(...filterAndPage(query))),
  on(redriveDead, async ({ body: { filter, ...how }, scheduler }) => reportOf(await scheduler.dead.redrive(filter, { limit: MAX_JOBS, ...how }))),
  on(deleteDead, async ({ body: { filter, ...how }, scheduler }) => reportOf(await scheduler.dead.delete(filter, { limit: MAX_JOBS, ...how }))),
];
