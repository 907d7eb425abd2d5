import { type BulkReport, isPawlError } from "pawl";
import { type BulkAnswer, countDead, deadGroups, dropDead, listDead, redriveDead } from "../contract/dead.js";
import { on } from "../handler.js";

const MOST = 1_000;

function reportOf({ failures, ...report }: BulkReport): BulkAnswer {
  return { ...report, failures: failures.map(({ job, error }) => ({ job, error: isPawlError(error) ? error.code : "internal" })) };
}

export const dead = [
  on(listDead, ({ query: { limit, after, ...filter }, scheduler }) =>
    scheduler.dead.list(filter, { ...(limit === undefined ? {} : { limit }), ...(after === undefined ? {} : { after }) }),
  ),
  on(countDead, async ({ query, scheduler }) => ({ count: await scheduler.dead.count(query) })),
  on(deadGroups, async ({ query: { limit, ...filter }, scheduler }) => ({
    groups: await scheduler.dead.groups(filter, limit === undefined ? {} : { limit }),
  })),
  on(redriveDead, async ({ body: { filter, limit = MOST, every }, scheduler }) =>
    reportOf(await scheduler.dead.redrive(filter, { limit, ...(every === undefined ? {} : { every }) })),
  ),
  on(dropDead, async ({ body: { filter, limit = MOST }, scheduler }) => reportOf(await scheduler.dead.drop(filter, { limit }))),
];
