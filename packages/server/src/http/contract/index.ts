import * as keys from "./access/api-keys.js";
import * as audit from "./access/audit.js";
import * as bulk from "./jobs/bulk.js";
import * as dead from "./jobs/dead.js";
import * as jobs from "./jobs/jobs.js";
import * as leases from "./jobs/leases.js";
import * as schedules from "./jobs/schedules.js";
import * as targets from "./jobs/targets.js";
import * as breakers from "./operate/breakers.js";
import * as limits from "./operate/limits.js";
import { queues, tasks, tenants } from "./operate/queues-tasks-tenants.js";
import * as service from "./operate/service.js";
import * as tenantData from "./operate/tenant-data.js";
import type { AnyRoute } from "./route.js";

const METHODS = ["POST", "PUT", "GET", "PATCH", "DELETE"];

/** Every route of the API, in the order the reference shows them. One that is not here does not exist. */
export const CONTRACT: readonly AnyRoute[] = [
  jobs,
  dead,
  bulk,
  schedules,
  queues,
  tasks,
  tenants,
  tenantData,
  breakers,
  limits,
  targets,
  leases,
  keys,
  audit,
  service,
].flatMap((noun) => Object.values(noun).filter(isRoute).sort(byPath));

/** Exports of a module come by their names: that would be `cancel` before `enqueue`. */
function byPath(a: AnyRoute, b: AnyRoute): number {
  if (a.path !== b.path) return a.path < b.path ? -1 : 1;
  return METHODS.indexOf(a.method) - METHODS.indexOf(b.method);
}

function isRoute(exported: unknown): exported is AnyRoute {
  return typeof exported === "object" && exported !== null && "path" in exported && "policy" in exported;
}
