import * as audit from "./audit.js";
import * as breakers from "./breakers.js";
import * as bulk from "./bulk.js";
import * as dead from "./dead.js";
import * as jobs from "./jobs.js";
import * as keys from "./keys.js";
import * as leases from "./leases.js";
import * as limits from "./limits.js";
import { queues, tasks, tenants } from "./named.js";
import type { AnyRoute } from "./route.js";
import * as schedules from "./schedules.js";
import * as service from "./service.js";
import * as targets from "./targets.js";
import * as tenantData from "./tenant-data.js";

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
