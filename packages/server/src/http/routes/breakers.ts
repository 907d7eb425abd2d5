import { closeBreaker, getBreaker, listBreakers, openBreaker, resetBreaker } from "../contract/operate/breakers.js";
import { filterAndPage, on, type RouteCall, tenantOf } from "../handler.js";

function refOf({ params, query, principal }: Pick<RouteCall<typeof getBreaker>, "params" | "query" | "principal">) {
  return { task: params.task, tenant: tenantOf(principal, query.tenant) };
}

export const breakers = [
  on(listBreakers, ({ query, pawl, principal }) => {
    const [filter, page] = filterAndPage(query);
    return pawl.breakers.list({ ...filter, ...(principal.tenant === undefined ? {} : { tenant: principal.tenant }) }, page);
  }),
  on(getBreaker, (call) => call.pawl.breakers.get(refOf(call))),
  on(openBreaker, (call) => call.pawl.breakers.open(refOf(call))),
  on(closeBreaker, (call) => call.pawl.breakers.close(refOf(call))),
  on(resetBreaker, (call) => call.pawl.breakers.reset(refOf(call))),
];
