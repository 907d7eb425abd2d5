import { closeBreaker, listBreakers, openBreaker, resetBreaker } from "../contract/operate/breakers.js";
import { on, type RouteCall, tenantOf } from "../handler.js";

function refOf({ params, query, principal }: Pick<RouteCall<typeof openBreaker>, "params" | "query" | "principal">) {
  return { task: params.task, tenant: tenantOf(principal, query.tenant) };
}

export const breakers = [
  on(listBreakers, ({ query: { limit, after, afterTenant, ...filter }, pawl, principal }) =>
    pawl.breakers.list(
      { ...filter, ...(principal.tenant === undefined ? {} : { tenant: principal.tenant }) },
      {
        ...(limit === undefined ? {} : { limit }),
        ...(after === undefined ? {} : { after: { task: after, tenant: tenantOf(principal, afterTenant) } }),
      },
    ),
  ),
  on(openBreaker, (call) => call.pawl.breakers.open(refOf(call))),
  on(closeBreaker, (call) => call.pawl.breakers.close(refOf(call))),
  on(resetBreaker, (call) => call.pawl.breakers.reset(refOf(call))),
];
