import { Enqueued } from "../jobs/job-answer.js";
import { route } from "../route.js";
import { closedObject, TenantName } from "../schemas.js";

const params = closedObject({ tenant: TenantName });

export const exportTenant = route({
  id: "tenants.export",
  method: "GET",
  path: "/v1/tenants/{tenant}/export",
  summary: "Everything that is held of a tenant, as a stream",
  description:
    "A JSON document on each line, with its `kind`: first the tenant, then schedules, limits, breakers, keys, audit and jobs with their history and logs. The " +
    "last is of kind `end`: without it the stream was cut off. One at a time of each tenant (or credential for all tenants), and a few of a process: more are 429 with " +
    "`Retry-After`. Whoever reads it slower than 16 KB a second, but for half a minute in all, is cut off.",
  policy: { action: "jobs.export", scope: "tenant" },
  params,
  status: 200,
  answer: { means: "The stream.", media: "application/x-ndjson" },
});

export const purgeTenant = route({
  id: "tenants.purge",
  method: "POST",
  path: "/v1/tenants/{tenant}/purge",
  summary: "Let everything of a tenant go, for good",
  description:
    "It runs as a job, `pawl.purge`: its `progress` says how far it is. Running jobs are cancelled first. What is enqueued meanwhile goes too, or stays if it " +
    "comes after the last look. The audit log stays. It runs where the service has the worker role.",
  policy: { action: "tenants.purge", scope: "everyone" },
  params,
  status: 202,
  answer: { means: "The job that does it.", body: Enqueued },
});
