import type { Scenario } from "../contract/scenario.js";
import { authentication } from "./authentication.js";
import { backlog } from "./backlog.js";
import { bodies } from "./bodies.js";
import { connections } from "./connections.js";
import { cost } from "./cost.js";
import { drain } from "./drain.js";
import { embedded } from "./embedded.js";
import { enqueue } from "./enqueue.js";
import { fairness } from "./fairness.js";
import { fanout } from "./fanout.js";
import { herd } from "./herd.js";
import { idle } from "./idle.js";
import { journey } from "./journey.js";
import { latency } from "./latency.js";
import { lateness } from "./lateness.js";
import { limits } from "./limits.js";
import { newcomers } from "./newcomers.js";
import { pinned } from "./pinned.js";
import { schedules } from "./schedules.js";
import { service } from "./service.js";
import { sustained } from "./sustained.js";
import { telemetry } from "./telemetry.js";
import { tenants } from "./tenants.js";
import { workers } from "./workers.js";

/** In the order of the table people read. */
export const SCENARIOS: readonly Scenario[] = [
  enqueue,
  drain,
  sustained,
  latency,
  lateness,
  herd,
  schedules,
  backlog,
  fanout,
  pinned,
  tenants,
  fairness,
  newcomers,
  limits,
  embedded,
  cost,
  journey,
  telemetry,
  service,
  authentication,
  connections,
  bodies,
  workers,
  idle,
];
