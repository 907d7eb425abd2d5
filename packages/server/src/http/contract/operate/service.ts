import type { Backlog, Finding, JobCounts, LiveLaneView, LiveWorkerView, PawlInfo, SeriesView } from "pawl/service";
import Type from "typebox";
import type { Policy } from "../policy.js";
import { route } from "../route.js";
import { as, closedObject, Duration, Instant, list, openObject, optional, pageOf, QueueName, TaskName, TenantName, Time, text } from "../schemas.js";

const Text = Type.String();
const WORKERS: Policy = { action: "workers.read", scope: "everyone" };

export const listWorkers = route({
  id: "workers.list",
  method: "GET",
  path: "/v1/workers",
  summary: "Workers that gave a sign of life in the last 45 s, in all processes",
  policy: WORKERS,
  status: 200,
  answer: {
    means: "The workers.",
    body: pageOf<LiveWorkerView>(
      Type.Object({
        name: Text,
        instance: Text,
        since: Time,
        tasks: list(Text),
        queues: optional(list(Text)),
        priorities: optional(list(Type.Integer())),
        tenants: optional(list(Text)),
        provides: Type.Object({ capabilities: list(Text), resources: Type.Object({}) }),
        concurrency: Type.Object({ total: Type.Integer(), queues: optional(Type.Object({})), tasks: optional(Type.Object({})) }),
        slots: optional(
          Type.Object(
            { total: Type.Integer(), inUse: Type.Integer(), overrun: Type.Integer(), stuck: optional(Type.Literal(true)) },
            {
              description:
                "as it said last, up to 15 s ago; `overrun`: handlers that go on though their attempts are over; `stuck`: so many that it takes nothing more",
            },
          ),
        ),
        oldest: optional(Time),
        version: optional(Text),
      }),
    ),
  },
});

export const listLanes = route({
  id: "lanes.list",
  method: "GET",
  path: "/v1/lanes",
  summary: "Lanes with ready jobs, and how many live workers can run them",
  policy: WORKERS,
  query: closedObject({ unserved: optional(Type.Boolean({ description: "true: only those that no live worker can run" })) }),
  status: 200,
  answer: {
    means: "The lanes. `lacks` and `why` say what no live worker has that the jobs need, where there is none for them.",
    body: pageOf<LiveLaneView>(
      Type.Object({
        lane: Type.Object({ queue: Text, priority: Type.Integer(), tenant: Text, task: Text }),
        workers: Type.Integer(),
        lacks: optional(list(Type.Object({ kind: Text }))),
        why: optional(Text),
      }),
    ),
  },
});

export const getDoctor = route({
  id: "doctor.get",
  method: "GET",
  path: "/v1/doctor",
  summary: "What is wrong with the store and those who work on it, what it costs, and how to mend it",
  policy: WORKERS,
  query: closedObject({ overdueAfter: optional(text(64, "how long something may last before it is told: 1m")) }),
  status: 200,
  answer: {
    means: "What was found; nothing where all is well.",
    body: pageOf<Finding>(Type.Object({ check: Text, level: Text, found: Text, costs: Text, mend: Text })),
  },
});

const CURRENT_STATES = ["blocked", "scheduled", "ready", "parked", "running", "dead"] as const;
const COUNT = Type.Integer();
const StateCountsSchema = Object.fromEntries(CURRENT_STATES.map((state) => [state, COUNT]));

export const getCounts = route({
  id: "counts.get",
  method: "GET",
  path: "/v1/counts",
  summary: "How many jobs are in each state",
  description:
    "Of one tenant, which is counted when it is asked for, `succeeded` and `cancelled` are left out: what is finished is counted for all tenants together.",
  policy: { action: "queues.read", scope: "tenant" },
  query: closedObject({ queue: optional(QueueName), task: optional(TaskName), tenant: optional(TenantName) }),
  status: 200,
  answer: { means: "The counts.", body: openObject<JobCounts>({ ...StateCountsSchema, succeeded: optional(COUNT), cancelled: optional(COUNT) }) },
});

export const getBacklog = route({
  id: "backlog.get",
  method: "GET",
  path: "/v1/backlog",
  summary: "Waiting jobs: how many, for what, and how long",
  description: "Reading it scans nothing, so dashboards and alerts may ask often.",
  policy: { action: "queues.read", scope: "everyone", allTenantsOnly: "what waits" },
  status: 200,
  answer: {
    means: "The backlog of all tenants together.",
    body: openObject<Omit<Backlog, "tenants">>({
      rows: list(Type.Object({ queue: Text, task: Text, counts: Type.Object({}) }), "jobs by queue, task and state"),
      waits: list(Type.Object({ queue: Text, priority: COUNT, longest: Type.Number() }), "ms since the job that has waited longest was due"),
      parked: Type.Object({}, { description: "parked jobs by what they wait for" }),
      paused: list(Type.Object({ kind: Text, name: Text }), "queues, tasks and tenants that are paused"),
    }),
  },
});

const POINT = Type.Object({
  at: Time,
  enqueued: COUNT,
  started: COUNT,
  succeeded: COUNT,
  retried: COUNT,
  died: COUNT,
  cancelled: COUNT,
  states: Type.Object(StateCountsSchema),
});

export const getSeries = route({
  id: "series.get",
  method: "GET",
  path: "/v1/series",
  summary: "What happened over time, step by step, and what stood then",
  description:
    "Counted by queue and task, for all tenants together. `retried` are attempts after which the job was scheduled again; `states` is how many jobs were " +
    "in each state at the end of the step. What came in just now is there a second or two later.",
  // A tenant's own would be told with the others' in it: nowhere is it written down whose they were.
  policy: { action: "queues.read", scope: "everyone", allTenantsOnly: "what happened over time" },
  query: closedObject({
    queue: optional(QueueName),
    task: optional(TaskName),
    by: optional(
      as<"queue" | "task">(Type.String({ enum: ["queue", "task"], description: "one series each, the busiest 100; one of all unless set" })),
    ),
    last: optional(as<number | string>({ ...Duration, description: "how far back from `to`: ms, or a text such as 24h; 1h unless set" })),
    from: optional(Instant),
    to: optional(Instant),
    step: optional(as<number | string>({ ...Duration, description: "length of a step in whole minutes: ms, or a text such as 5m; 1m unless set" })),
  }),
  status: 200,
  answer: {
    means: "The points, oldest first.",
    body: openObject<SeriesView>({
      from: Time,
      to: Time,
      step: Type.Integer({ description: "ms" }),
      series: list(Type.Object({ queue: optional(Text), task: optional(Text), points: list(POINT) })),
    }),
  },
});

export interface ServiceInfo extends Pick<PawlInfo, "engine" | "version" | "durability" | "schema" | "receivesWakeups"> {
  /** of Pawl itself */
  readonly pawl: string;
}
export const getInfo = route({
  id: "info.get",
  method: "GET",
  path: "/v1/info",
  summary: "The engine, what an acknowledged job survives, and versions",
  policy: { action: "info.read", scope: "tenant" },
  status: 200,
  answer: {
    means: "What this service is.",
    body: openObject<ServiceInfo>({
      pawl: Text,
      engine: Text,
      version: Text,
      durability: Text,
      schema: Type.Integer(),
      receivesWakeups: Type.Boolean(),
    }),
  },
});

const OPEN: Policy = { open: "load balancers ask it, and it tells nothing but yes or no" };
export const livez = route({
  id: "live",
  method: "GET",
  path: "/livez",
  summary: "Whether the process is alive",
  policy: OPEN,
  status: 200,
  answer: { means: "It is.", body: openObject<{ status: "alive" }>({ status: Text }) },
});
export const readyz = route({
  id: "ready",
  method: "GET",
  path: "/readyz",
  summary: "Whether requests can be served: 503 with a reason while the store is away or the process is going",
  policy: OPEN,
  status: 200,
  answer: { means: "They can.", body: openObject<{ status: "ready" }>({ status: Text }) },
});

const DOCS: Policy = { open: "it is the same for everybody, and in the repository" };
export const openapi = route({
  id: "openapi",
  method: "GET",
  path: "/v1/openapi.json",
  summary: "This API as OpenAPI 3.1",
  policy: DOCS,
  status: 200,
  answer: { means: "The document.", body: as<object>({ type: "object" }) },
});
export const docs = route({
  id: "docs",
  method: "GET",
  path: "/v1/docs",
  summary: "This API for people",
  policy: DOCS,
  status: 200,
  answer: { means: "A page.", media: "text/html" },
});

export const errorDocs = route({
  id: "errorDocs",
  method: "GET",
  path: "/v1/docs/errors/{code}",
  summary: "What an error code means, and what to do: the `type` of problems leads here",
  policy: DOCS,
  params: closedObject({ code: text(100, "the code of a problem") }),
  status: 200,
  answer: { means: "A page.", media: "text/html" },
});

export const events = route({
  id: "events",
  method: "GET",
  path: "/v1/events",
  summary: "What happens, as server-sent events",
  description:
    "Each has a name, an id and JSON. A stream that broke goes on where it was with `Last-Event-ID`, also at another process of the service, as far back " +
    "as it is kept: 10 minutes, while somebody listens. What it has missed beyond that is told by an event `gap`. A credential of one tenant hears of its own " +
    "jobs only. Events are those of every process on the store.",
  policy: { action: "events.read", scope: "tenant" },
  query: closedObject({
    event: optional(text(1_000, "names of events, divided by commas; all unless set")),
    queue: optional(QueueName),
    task: optional(TaskName),
  }),
  status: 200,
  answer: { means: "The stream.", media: "text/event-stream" },
});
