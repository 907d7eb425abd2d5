import { pawlError, serviceOf } from "pawl/service";
import {
  docs,
  errorDocs,
  events,
  getBacklog,
  getCounts,
  getDoctor,
  getInfo,
  getSeries,
  listLanes,
  listWorkers,
  livez,
  openapi,
  readyz,
} from "../contract/operate/service.js";
import { on, RawAnswer } from "../handler.js";
import { errorPage, openapiDocument, referencePage } from "../reference/index.js";

export const service = [
  on(listWorkers, ({ pawl }) => pawl.workers.list()),
  on(listLanes, ({ pawl, query }) => pawl.lanes.list(query)),
  on(getDoctor, async ({ pawl, query }) => ({ items: await pawl.doctor(query) })),
  on(getCounts, ({ scheduler, query: { tenant, ...of } }) => (tenant === undefined ? scheduler : scheduler.forTenant(tenant)).counts(of)),
  on(getBacklog, async ({ pawl }) => {
    const { rows, waits, parked, paused } = await serviceOf(pawl).backlog();
    return { rows, waits, parked, paused };
  }),
  on(getSeries, ({ pawl, query }) => pawl.series(query)),
  on(getInfo, async ({ pawl, deps }) => {
    const { engine, version, durability, schema, receivesWakeups } = await pawl.info();
    return { pawl: deps.version, engine, version, durability, schema, receivesWakeups };
  }),
  on(livez, () => ({ status: "alive" as const })),
  on(readyz, async ({ deps }) => {
    await deps.ready();
    return { status: "ready" as const };
  }),
  on(events, async ({ principal, query, deps, lastEventId, stillAllowed }) => {
    return new RawAnswer("text/event-stream; charset=utf-8", await deps.subscribe({ principal, filter: query, lastEventId, stillAllowed }));
  }),
  on(openapi, ({ deps }) => openapiDocument(deps.version)),
  on(errorDocs, ({ params: { code }, deps }) => {
    const page = errorPage(code, deps.version);
    if (page === undefined) throw pawlError("route_unknown", { method: "GET", path: `/v1/docs/errors/${code}` });
    return new RawAnswer("text/html; charset=utf-8", page);
  }),
  on(docs, ({ deps }) => new RawAnswer("text/html; charset=utf-8", referencePage(deps.version))),
];
