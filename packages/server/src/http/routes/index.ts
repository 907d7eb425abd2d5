import type { Handled } from "../handler.js";
import { audit } from "./audit.js";
import { batch } from "./batch.js";
import { breakers } from "./breakers.js";
import { bulk } from "./bulk.js";
import { dead } from "./dead.js";
import { jobs } from "./jobs.js";
import { keys } from "./keys.js";
import { leases } from "./leases.js";
import { limits } from "./limits.js";
import { named } from "./named.js";
import { schedules } from "./schedules.js";
import { service } from "./service.js";
import { targets } from "./targets.js";
import { tenantData } from "./tenant-data.js";

/** Every route with its handler. A test holds this list against the contract. */
export const routes: readonly Handled[] = [
  ...jobs,
  ...batch,
  ...dead,
  ...bulk,
  ...schedules,
  ...named,
  ...tenantData,
  ...breakers,
  ...limits,
  ...targets,
  ...leases,
  ...keys,
  ...audit,
  ...service,
];
