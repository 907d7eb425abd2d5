/** `pawl-server/telemetry`: metrics, traces and logs of a pawl, for applications that embed one. */
export { type Log, type LogOptions, logTo } from "./logs/log.js";
export { type Metrics, type MetricsOptions, metricsOf } from "./metrics/metrics.js";
export { type OtelOptions, otelTracing } from "./traces/trace.js";
