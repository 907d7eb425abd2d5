export { type Config, defineConfig, type SecretReference, type StoreConfig, type TlsConfig } from "./config/config.js";
export { ConfigError, type Problem } from "./config/problem.js";
export { type Configuration, readConfiguration, type Sources } from "./config/read.js";
export type { Component } from "./config/settings.js";
export { type PushOptions, pushTask } from "./push/push-task.js";
export { type DeliveryHeaders, type Received, type ReceiverOptions, receiver } from "./push/receiver.js";
export { type Service, type ServiceEnvironment, startService } from "./run/service.js";
export { type Metrics, type MetricsOptions, metricsOf } from "./telemetry/metrics/metrics.js";
