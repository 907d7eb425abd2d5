import {
  docs,
  events,
  getCheckup,
  getCounts,
  getInfo,
  getSeries,
  listLanes,
  listUnserved,
  listWorkers,
  livez,
  openapi,
  readyz,
} from "../contract/service.js";
import { on, Raw } from "../handler.js";
import { openapiDocument, referencePage } from "../reference/index.js";

export const service = [
  on(listWorkers, async ({ pawl }) => ({ workers: await pawl.workers() })),
  on(listUnserved, async ({ pawl }) => ({ lanes: await pawl.unserved() })),
  on(listLanes, async ({ pawl }) => ({ lanes: await pawl.lanes() })),
  on(getCheckup, async ({ pawl, query }) => ({ findings: await pawl.checkup(query) })),
  on(getCounts, ({ scheduler, query: { tenant, ...of } }) => (tenant === undefined ? scheduler : scheduler.as({ tenant })).counts(of)),
  on(getSeries, ({ pawl, query }) => pawl.series(query)),
  on(getInfo, async ({ pawl, parts }) => {
    const { engine, version, durability, schema, hearsOthers } = await pawl.info();
    return { pawl: parts.version, engine, version, durability, schema, hearsOthers };
  }),
  on(livez, () => ({ status: "alive" as const })),
  on(readyz, async ({ parts }) => {
    await parts.ready();
    return { status: "ready" as const };
  }),
  on(events, async ({ principal, query, parts, lastEventId, stillAllowed }) => {
    return new Raw("text/event-stream; charset=utf-8", await parts.subscribe({ principal, filter: query, lastEventId, stillAllowed }));
  }),
  on(openapi, ({ parts }) => openapiDocument(parts.version)),
  on(docs, ({ parts }) => new Raw("text/html; charset=utf-8", referencePage(parts.version))),
];
