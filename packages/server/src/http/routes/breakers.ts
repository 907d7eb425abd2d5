import type { BreakerView } from "pawl/service";
import { closeBreaker, getBreaker, listBreakers, openBreaker, resetBreaker } from "../contract/operate/breakers.js";
import { filterAndPage, on, type RouteCall, tenantOf } from "../handler.js";

function refOf({ params, query, principal }: Pick<RouteCall<typeof getBreaker>, "params" | "query" | "principal">) {
  return { task: params.task, tenant: tenantOf(principal, query.tenant) };
}

/** A breaker that the store has no record of, as it has seen no failures lately. */
function quietBreaker(ref: ReturnType<typeof refOf>): BreakerView {
  return { ...ref, state: "closed", forced: false, since: new Date(), succeeded: 0, failed: 0 };
}

export const breakers = [
  on(listBreakers, ({ query, pawl, principal }) => {
    const [filter, page] = filterAndPage(query);
    return pawl.breakers.list({ ...filter, ...(principal.tenant === undefined ? {} : { tenant: principal.tenant }) }, page);
  }),
  on(getBreaker, async (call) => (await call.pawl.breakers.get(refOf(call))) ?? quietBreaker(refOf(call))),
  on(openBreaker, (call) => call.pawl.breakers.open(refOf(call))),
  on(closeBreaker, (call) => call.pawl.breakers.close(refOf(call))),
  on(resetBreaker, (call) => call.pawl.breakers.reset(refOf(call))),
];
