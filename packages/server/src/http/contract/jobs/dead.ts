import type { BulkReport, DeadGroupView } from "pawl/service";
import Type from "typebox";
import type { Policy } from "../policy.js";
import { route } from "../route.js";
import { closedObject, list, openObject, optional, PAGE, Pace, pageOf, REASON, Time } from "../schemas.js";
import { Job, JobsPage } from "./job-answer.js";
import { FILTER } from "./job-filter.js";

const READ: Policy = { action: "jobs.read", scope: "tenant" };
const CONTROL: Policy = { action: "jobs.control", scope: "tenant" };

/** So many in one request; more is a bulk operation, which runs as a job. */
const MaxJobs = Type.Integer({ minimum: 1, maximum: 1_000, description: "how many at most; 1,000 unless set. For more, see bulk operations" });

export interface BulkAnswer extends Omit<BulkReport, "failures"> {
  readonly failures: readonly { readonly job: string; readonly error: string }[];
}
const Report = openObject<BulkAnswer>({
  changed: Type.Integer({ description: "how many were changed" }),
  skipped: Type.Integer({ description: "how many somebody else changed first" }),
  failed: Type.Integer(),
  failures: list(Type.Object({ job: Type.String(), error: Type.String() }), "the first few of those that failed"),
});

export const listDead = route({
  id: "dead.list",
  method: "GET",
  path: "/v1/dead",
  summary: "Dead jobs by filter, newest due time first",
  policy: READ,
  query: closedObject({ ...FILTER, ...PAGE }),
  status: 200,
  answer: { means: "A page of jobs.", body: JobsPage },
});

export const countDead = route({
  id: "dead.count",
  method: "GET",
  path: "/v1/dead/count",
  summary: "How many dead jobs there are",
  policy: READ,
  query: closedObject(FILTER),
  status: 200,
  answer: { means: "Their number.", body: openObject<{ count: number }>({ count: Type.Integer() }) },
});

export const deadGroups = route({
  id: "dead.groups",
  method: "GET",
  path: "/v1/dead/groups",
  summary: "Dead jobs by what they died of, the largest group first",
  description: "A group is one task and class of failure, and a message that differs in numbers, ids and quoted parts only.",
  policy: READ,
  query: closedObject({ queue: FILTER.queue, task: FILTER.task, failure: FILTER.failure, tenant: FILTER.tenant, ...PAGE }),
  status: 200,
  answer: {
    means: "The groups. A `fingerprint` is a filter of the other operations.",
    body: pageOf<DeadGroupView>(
      Type.Object({
        fingerprint: Type.String(),
        task: Type.String(),
        kind: Type.String(),
        name: Type.String(),
        message: Type.String(),
        count: Type.Integer(),
        firstSeen: Time,
        lastSeen: Time,
        sample: Job,
      }),
    ),
  },
});

export const redriveDead = route({
  id: "dead.redrive",
  method: "POST",
  path: "/v1/dead/redrive",
  summary: "Bring dead jobs back, a thousand at most",
  policy: CONTROL,
  body: closedObject({ filter: optional(closedObject(FILTER)), limit: optional(MaxJobs), pace: optional(Pace), ...REASON }),
  status: 200,
  answer: { means: "What became of them.", body: Report },
  example: { filter: { task: "email", failure: "timeout" }, pace: "10/s" },
});

export const deleteDead = route({
  id: "dead.delete",
  method: "POST",
  path: "/v1/dead/delete",
  summary: "Remove dead jobs and their history, a thousand at most",
  policy: CONTROL,
  body: closedObject({ filter: optional(closedObject(FILTER)), limit: optional(MaxJobs), ...REASON }),
  status: 200,
  answer: { means: "What became of them.", body: Report },
});
