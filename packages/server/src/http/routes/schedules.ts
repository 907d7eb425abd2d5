import type { ScheduleOptions } from "pawl";
import type { ScheduleChanges } from "pawl/service";
import {
  backfillSchedule,
  deleteSchedule,
  getSchedule,
  listSchedules,
  pauseSchedule,
  previewSchedule,
  putSchedule,
  resumeSchedule,
  scheduleTicks,
  triggerSchedule,
  updateSchedule,
} from "../contract/jobs/schedules.js";
import { filterAndPage, on, type RouteCall, StatusAnswer, tenantOf } from "../handler.js";
import { enqueuedAnswer } from "./jobs.js";

type ScheduleCall = Pick<RouteCall<typeof getSchedule>, "params" | "query" | "principal">;

function refOf({ params: { schedule }, query: { tenant }, principal }: ScheduleCall) {
  return { name: schedule, tenant: tenantOf(principal, tenant) };
}

export const schedules = [
  on(putSchedule, async ({ params, body: { task, ...options }, scheduler }) => {
    const result = await scheduler.schedules.put(params.schedule, task, options as ScheduleOptions);
    return result === "created" ? new StatusAnswer(201, { result }) : { result };
  }),
  on(updateSchedule, async (call) => ({ result: await call.scheduler.schedules.update(refOf(call), call.body as ScheduleChanges) })),
  on(getSchedule, (call) => call.scheduler.schedules.get(refOf(call))),
  on(listSchedules, ({ query, scheduler }) => scheduler.schedules.list(...filterAndPage(query))),
  on(pauseSchedule, async (call) => {
    await call.scheduler.schedules.pause(refOf(call));
  }),
  on(resumeSchedule, async (call) => {
    await call.scheduler.schedules.resume(refOf(call));
  }),
  on(deleteSchedule, async (call) => {
    await call.scheduler.schedules.delete(refOf(call));
  }),
  on(triggerSchedule, async (call) => {
    const keyed = call.idempotencyKey === undefined ? {} : { idempotencyKey: call.idempotencyKey };
    return enqueuedAnswer(await call.scheduler.schedules.trigger(refOf(call), { ...keyed, ...call.body }));
  }),
  on(backfillSchedule, (call) => call.scheduler.schedules.backfill(refOf(call), call.body)),
  on(previewSchedule, async (call) => {
    const { count, from } = call.query;
    const how = { ...(count === undefined ? {} : { count }), ...(from === undefined ? {} : { from }) };
    return { items: await call.scheduler.schedules.preview(refOf(call), how) };
  }),
  on(scheduleTicks, (call) => {
    const [, page] = filterAndPage(call.query);
    return call.scheduler.schedules.ticks(refOf(call), page);
  }),
];
