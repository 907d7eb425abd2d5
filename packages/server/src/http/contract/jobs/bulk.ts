import { BULK_VERBS, type BulkVerb } from "pawl/service";
import Type from "typebox";
import { route } from "../route.js";
import { as, closedObject, optional, Pace, REASON } from "../schemas.js";
import { Enqueued } from "./job-answer.js";
import { JOBS_FILTER } from "./job-filter.js";

export const startBulk = route({
  id: "bulk.start",
  method: "POST",
  path: "/v1/bulk",
  summary: "Do something to all jobs of a filter",
  description:
    "It runs as a job of the tenant's own, `pawl.bulk`: its `progress` says how far it is, cancelling it stops it, and its `output` says what became of " +
    "them. What is done stays done. It runs where the service has the worker role.",
  policy: { action: "jobs.control", scope: "tenant" },
  body: closedObject({
    verb: as<BulkVerb>({ enum: BULK_VERBS }),
    filter: closedObject(JOBS_FILTER),
    limit: optional(Type.Integer({ minimum: 1, maximum: 1_000_000_000 })),
    pace: optional(Pace),
    ...REASON,
  }),
  status: 202,
  answer: { means: "The job that does it.", body: Enqueued },
  example: { verb: "cancel", filter: { task: "email", state: "scheduled" } },
});
