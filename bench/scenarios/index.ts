import type { Scenario } from "../contract/scenario.js";
import { fairness } from "./latency/fairness.js";
import { herd } from "./latency/herd.js";
import { idle } from "./latency/idle.js";
import { journey } from "./latency/journey.js";
import { latency } from "./latency/latency.js";
import { lateness } from "./latency/lateness.js";
import { newcomers } from "./latency/newcomers.js";
import { schedules } from "./latency/schedules.js";
import { authentication } from "./service/authentication.js";
import { bodies } from "./service/bodies.js";
import { connections } from "./service/connections.js";
import { fanout } from "./service/fanout.js";
import { service } from "./service/service.js";
import { telemetry } from "./service/telemetry.js";
import { backlog } from "./throughput/backlog.js";
import { cost } from "./throughput/cost.js";
import { drain } from "./throughput/drain.js";
import { embedded } from "./throughput/embedded.js";
import { enqueue } from "./throughput/enqueue.js";
import { limits } from "./throughput/limits.js";
import { pinned } from "./throughput/pinned.js";
import { sustained } from "./throughput/sustained.js";
import { tenants } from "./throughput/tenants.js";
import { workers } from "./throughput/workers.js";

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
