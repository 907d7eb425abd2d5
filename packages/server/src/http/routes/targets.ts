import type { Duration, TargetOptions } from "pawl";
import { getTarget, listTargets, putTarget, removeTarget, rotateTarget } from "../contract/targets.js";
import { type Call, on, tenantOf } from "../handler.js";

type One = Pick<Call<typeof getTarget>, "params" | "query" | "principal">;

function refOf({ params: { task }, query: { tenant }, principal }: One) {
  return { task, tenant: tenantOf(principal, tenant) };
}

export const targets = [
  on(putTarget, ({ params, body, scheduler }) => scheduler.targets.put(params.task, body as TargetOptions)),
  on(listTargets, ({ query: { limit, after, afterTenant, ...filter }, scheduler, principal }) =>
    scheduler.targets.list(filter, {
      ...(limit === undefined ? {} : { limit }),
      ...(after === undefined ? {} : { after: { task: after, tenant: tenantOf(principal, afterTenant) } }),
    }),
  ),
  on(getTarget, (call) => call.scheduler.targets.get(refOf(call))),
  on(rotateTarget, (call) => {
    const overlap = call.body?.overlap;
    return call.scheduler.targets.rotate(refOf(call), overlap === undefined ? {} : { overlap: overlap as Duration });
  }),
  on(removeTarget, async (call) => {
    await call.scheduler.targets.remove(refOf(call));
  }),
];
