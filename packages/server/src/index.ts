export { type Config, defineConfig, type SecretReference, type StoreConfig, type TlsConfig } from "./config/config.js";
export { ConfigError, type Problem } from "./config/problem.js";
export { type Configuration, readConfiguration, type Sources } from "./config/read.js";
export type { Role } from "./config/settings.js";
export { type DeliveryHeaders, type Received, type ReceiverOptions, receiver } from "./push/receiver.js";
export { type PushOptions, pushTask } from "./push/task.js";
export { type Service, startService, type World } from "./serve/service.js";
export { type Metrics, type MetricsOptions, metricsOf } from "./telemetry/metrics.js";
