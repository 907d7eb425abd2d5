import * as audit from "./audit.js";
import * as breakers from "./breakers.js";
import * as bulk from "./bulk.js";
import * as dead from "./dead.js";
import * as jobs from "./jobs.js";
import * as keys from "./keys.js";
import * as leases from "./leases.js";
import { queues, tasks, tenants } from "./named.js";
import type { AnyRoute } from "./route.js";
import * as schedules from "./schedules.js";
import * as service from "./service.js";
import * as tenantData from "./tenant-data.js";

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
  leases,
  keys,
  audit,
  service,
].flatMap((noun) => Object.values(noun).filter(isRoute));

function isRoute(exported: unknown): exported is AnyRoute {
  return typeof exported === "object" && exported !== null && "path" in exported && "policy" in exported;
}
