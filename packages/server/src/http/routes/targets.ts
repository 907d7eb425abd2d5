import type { Duration } from "pawl";
import type { TargetOptions } from "pawl/service";
import { deleteTarget, getTarget, listTargets, putTarget, rotateTarget } from "../contract/jobs/targets.js";
import { filterAndPage, on, type RouteCall, StatusAnswer, tenantOf } from "../handler.js";

type TargetCall = Pick<RouteCall<typeof getTarget>, "params" | "query" | "principal">;

function refOf({ params: { task }, query: { tenant }, principal }: TargetCall) {
  return { task, tenant: tenantOf(principal, tenant) };
}

export const targets = [
  on(putTarget, async ({ params, body, scheduler }) => {
    const shown = await scheduler.targets.put(params.task, body as TargetOptions);
    return shown.secret === undefined ? shown : new StatusAnswer(201, shown);
  }),
  on(listTargets, ({ query, scheduler }) => scheduler.targets.list(...filterAndPage(query))),
  on(getTarget, (call) => call.scheduler.targets.get(refOf(call))),
  on(rotateTarget, (call) => {
    const keepOldFor = call.body?.keepOldFor;
    return call.scheduler.targets.rotate(refOf(call), keepOldFor === undefined ? {} : { keepOldFor: keepOldFor as Duration });
  }),
  on(deleteTarget, async (call) => {
    await call.scheduler.targets.delete(refOf(call));
  }),
];
