import type { HandledRoute } from "../handler.js";
import { keys } from "./api-keys.js";
import { audit } from "./audit.js";
import { breakers } from "./breakers.js";
import { bulk } from "./bulk.js";
import { dead } from "./dead.js";
import { batch } from "./enqueue-many.js";
import { jobs } from "./jobs.js";
import { leases } from "./leases.js";
import { limits } from "./limits.js";
import { queuesTasksTenants } from "./queues-tasks-tenants.js";
import { schedules } from "./schedules.js";
import { service } from "./service.js";
import { targets } from "./targets.js";
import { tenantData } from "./tenant-data.js";

/** Every route with its handler. A test holds this list against the contract. */
export const routes: readonly HandledRoute[] = [
  ...jobs,
  ...batch,
  ...dead,
  ...bulk,
  ...schedules,
  ...queuesTasksTenants,
  ...tenantData,
  ...breakers,
  ...limits,
  ...targets,
  ...leases,
  ...keys,
  ...audit,
  ...service,
];
