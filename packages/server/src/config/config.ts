import type { Duration } from "pawl";
import type { QueueDefaults } from "pawl/service";
import type { Component } from "./settings.js";

/** A secret, by where it is kept: `file:PATH`, `env:NAME` or `command:PROGRAM ARGUMENTS`. */
export type SecretReference = `file:${string}` | `env:${string}` | `command:${string}`;

/** What `pawl.config.ts` holds. Flags and the environment say the same things and come first: see docs/service.md. */
export interface Config {
  /** where the jobs are: a folder, `postgres://user@host/database`, `memory:` */
  readonly store?: string | StoreConfig;
  /** what this process does; left out: everything */
  readonly components?: readonly Component[];
  /** `host:port` */
  readonly listen?: string;
  /** `keys`: whoever calls must have one; `none` (the default): loopback only */
  readonly auth?: "none" | "keys";
  /** networks of proxies before it, `["10.0.0.0/8"]`: the caller's address is what they say it is */
  readonly trustedProxies?: readonly string[];
  readonly apiKeys?: { readonly pepper?: SecretReference };
  readonly redact?: readonly string[] | string;
  readonly encryption?: { readonly masterKeys?: readonly SecretReference[] | SecretReference };
  /** where signed heads of the audit log are written, and with which key: see docs/audit.md */
  readonly audit?: { readonly anchors?: string; readonly key?: SecretReference };
  readonly tls?: TlsConfig;
  /** files or folders whose modules export tasks and schedules */
  readonly tasks?: string | readonly string[];
  readonly worker?: { readonly concurrency?: number; readonly mostLost?: number; readonly queues?: readonly string[]; readonly name?: string };
  /** where jobs may be pushed to, and how many at a time: see docs/push.md */
  readonly push?: { readonly allow?: readonly string[]; readonly plain?: boolean; readonly concurrency?: number };
  /** defaults of jobs by queue, as for `open` */
  readonly queueDefaults?: Readonly<Record<string, QueueDefaults>>;
  readonly keep?: { readonly jobs?: Duration; readonly dead?: Duration; readonly series?: Duration };
  readonly shutdown?: { readonly delay?: Duration; readonly grace?: Duration };
  /** by task, how long jobs may take from due to finished ("*": all others); and how many tenants have numbers of their own */
  readonly metrics?: { readonly objectives?: Readonly<Record<string, Duration>>; readonly tenants?: number };
  /** OpenTelemetry, as a module of yours sets it up: see docs/tracing.md */
  readonly tracing?: { readonly setup?: string; readonly roots?: boolean };
  readonly log?: {
    readonly level?: "debug" | "info" | "warn" | "error" | "silent";
    readonly format?: "json" | "lines";
    /** whether `pawl serve` logs a line for each request; left out: yes */
    readonly requests?: boolean;
  };
}

export interface StoreConfig {
  readonly url?: string;
  readonly password?: SecretReference;
  readonly tls?: "verify" | "off";
  readonly ca?: string;
  readonly listenUrl?: string;
  readonly schema?: string;
  readonly connections?: number;
  readonly migrate?: boolean;
  readonly engine?: "native" | "pglite";
}

export interface TlsConfig {
  readonly cert?: string;
  readonly key?: SecretReference;
  readonly clientCa?: string;
}

/** Gives a configuration its type: `export default defineConfig({ … })`. */
export function defineConfig(config: Config): Config {
  return config;
}
