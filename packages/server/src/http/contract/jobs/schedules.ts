import type { ScheduleView } from "pawl";
import type { BackfillReport, PreviewedTick, ScheduledJobOptions, TickView } from "pawl/service";
import Type from "typebox";
import type { Policy } from "../policy.js";
import { route } from "../route.js";
import {
  Anything,
  as,
  closedObject,
  Duration,
  Instant,
  list,
  openObject,
  optional,
  PAGE,
  pageOf,
  ScheduleName,
  TaskName,
  TenantName,
  Time,
  text,
} from "../schemas.js";
import { Enqueued } from "./job-answer.js";
import { JOB_OPTIONS } from "./job-body.js";

const READ: Policy = { action: "schedules.read", scope: "tenant" };
const WRITE: Policy = { action: "schedules.write", scope: "tenant" };

const one = closedObject({ schedule: ScheduleName });
const ofTenant = closedObject({ tenant: optional(TenantName) });
const oneOf = <T extends string>(...values: readonly T[]) => as<T>({ enum: values });
const PATH = "/v1/schedules/{schedule}";

const TIMES = {
  cron: optional(text(256, "five or six fields")),
  every: optional(Duration),
  at: optional(Instant),
  timeZone: optional(text(64, "of the tz database; UTC unless set")),
  start: optional(Instant),
  end: optional(Instant),
  dst: optional(closedObject({ gap: optional(oneOf("shift", "skip")), overlap: optional(oneOf("first", "second", "both")) })),
  missed: optional(
    closedObject({
      policy: optional(oneOf("skip", "latest", "all")),
      tolerance: optional(Duration),
      window: optional(Duration),
      max: optional(Type.Integer()),
      pace: optional(Duration),
    }),
  ),
  overlap: optional(oneOf("allow", "skip", "wait", "cancel")),
  stagger: optional(Duration),
  jitter: optional(Duration),
  keep: optional(closedObject({ succeeded: optional(Type.Integer()), dead: optional(Type.Integer()) })),
};

const Schedule = openObject<ScheduleView>(
  {
    name: Type.String(),
    tenant: Type.String(),
    task: Type.String(),
    queue: Type.String(),
    cron: optional(Type.String()),
    every: optional(Type.Integer()),
    at: optional(Time),
    timeZone: optional(Type.String()),
    start: optional(Time),
    end: optional(Time),
    dst: optional(Type.Object({ gap: Type.String(), overlap: Type.String() })),
    missed: optional(Type.Object({ policy: Type.String() })),
    overlap: optional(Type.String()),
    stagger: optional(Type.Integer()),
    jitter: optional(Type.Integer()),
    keep: optional(Type.Object({ succeeded: optional(Type.Integer()), dead: optional(Type.Integer()) })),
    app: optional(Type.String()),
    overridden: optional(Type.Boolean()),
    undeclaredSince: optional(Time),
    pausedSince: optional(Time),
    next: optional(Time),
    revision: Type.Integer(),
    createdAt: Time,
    changedAt: Time,
  },
  "A schedule. Durations are ms.",
);
const Put = openObject<{ result: "created" | "changed" | "unchanged" }>({ result: oneOf("created", "changed", "unchanged") });

export const putSchedule = route({
  id: "schedules.put",
  method: "PUT",
  path: PATH,
  summary: "Make a schedule, or change it",
  policy: WRITE,
  params: one,
  body: closedObject({
    task: TaskName,
    input: optional(Anything),
    tenant: optional(TenantName),
    job: optional(as<ScheduledJobOptions>(closedObject(JOB_OPTIONS))),
    ...TIMES,
  }),
  status: 200,
  otherStatuses: { 201: "It is new." },
  answer: { means: "It was there, and is changed; the same as it was, it stays as it is.", body: Put },
  example: { task: "report", cron: "0 8 * * 1-5", timeZone: "Europe/Berlin" },
});
export const updateSchedule = route({
  id: "schedules.update",
  method: "PATCH",
  path: PATH,
  summary: "Change a part of it",
  policy: WRITE,
  params: one,
  query: ofTenant,
  body: closedObject({ input: optional(Anything), ...TIMES }),
  status: 200,
  answer: { means: "It begins anew from now, and makes up for nothing.", body: Put },
});
export const getSchedule = route({
  id: "schedules.get",
  method: "GET",
  path: PATH,
  summary: "A schedule",
  policy: READ,
  params: one,
  query: ofTenant,
  status: 200,
  answer: { means: "The schedule.", body: Schedule },
});
export const listSchedules = route({
  id: "schedules.list",
  method: "GET",
  path: "/v1/schedules",
  summary: "Schedules, by tenant and name",
  policy: READ,
  query: closedObject({
    tenant: optional(TenantName),
    undeclared: optional(Type.Boolean({ description: "the code that declared it no longer has it" })),
    paused: optional(Type.Boolean()),
    ...PAGE,
  }),
  status: 200,
  answer: { means: "A page of schedules.", body: pageOf<ScheduleView>(Schedule) },
});

const act = (verb: "pause" | "resume", summary: string) =>
  route({
    id: `schedules.${verb}`,
    method: "POST",
    path: `${PATH}/${verb}`,
    summary,
    policy: WRITE,
    params: one,
    query: ofTenant,
    status: 204,
    answer: { means: "It is done." },
  });
export const pauseSchedule = act("pause", "No more ticks until it is resumed");
export const resumeSchedule = act("resume", "Let it tick again");
export const deleteSchedule = route({
  id: "schedules.delete",
  method: "DELETE",
  path: PATH,
  summary: "Remove it with the record of its ticks; its jobs stay",
  policy: WRITE,
  params: one,
  query: ofTenant,
  status: 204,
  answer: { means: "It is gone." },
});
export const triggerSchedule = route({
  id: "schedules.trigger",
  method: "POST",
  path: `${PATH}/trigger`,
  summary: "One more job of it, now",
  policy: WRITE,
  params: one,
  query: ofTenant,
  body: closedObject({ input: optional(Anything), idempotencyKey: optional(text(256, "an idempotency key")) }),
  bodyOptional: true,
  status: 201,
  answer: { means: "The job.", body: Enqueued },
});
export const backfillSchedule = route({
  id: "schedules.backfill",
  method: "POST",
  path: `${PATH}/backfill`,
  summary: "Jobs for ticks of the past that have none",
  policy: WRITE,
  params: one,
  query: ofTenant,
  body: closedObject({ from: Instant, to: Instant, pace: optional(Duration), dryRun: optional(Type.Boolean()) }),
  status: 200,
  answer: {
    means: "What was there, what was missing, and how many jobs were made.",
    body: openObject<BackfillReport>({ ticks: Type.Integer(), fired: Type.Integer(), missing: list(Time), jobs: Type.Integer() }),
  },
});
export const previewSchedule = route({
  id: "schedules.preview",
  method: "GET",
  path: `${PATH}/preview`,
  summary: "Its next ticks, and what is odd about them where clocks are changed",
  policy: READ,
  params: one,
  query: closedObject({
    tenant: optional(TenantName),
    count: optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
    from: optional(text(64, "ISO 8601")),
  }),
  status: 200,
  answer: { means: "The ticks.", body: pageOf<PreviewedTick>(Type.Object({ at: Time, firesAt: Time, note: optional(Anything) })) },
});
export const scheduleTicks = route({
  id: "schedules.ticks",
  method: "GET",
  path: `${PATH}/ticks`,
  summary: "What became of its ticks, newest first",
  policy: READ,
  params: one,
  query: closedObject({ tenant: optional(TenantName), ...PAGE }),
  status: 200,
  answer: { means: "The ticks.", body: pageOf<TickView>(Type.Object({ kind: Type.String() })) },
});
