import { type TracerProvider, trace } from "@opentelemetry/api";
import type { Tracing } from "pawl/service";
import { importModule, loadFailure } from "../config/file.js";
import { ConfigError, whereOf } from "../config/problem.js";
import type { Configuration } from "../config/read.js";
import type { RequestTracing } from "../http/request/request-trace.js";
import { otelRequests } from "../telemetry/traces/request-span.js";
import { otelTracing } from "../telemetry/traces/trace.js";

/** What follows the jobs and the requests of a service. */
export interface ServiceTracing {
  readonly jobs: Tracing;
  readonly requests: RequestTracing;
  /** Sends what was recorded on its way, before the process goes. */
  flush(): Promise<void>;
}

/**
 * OpenTelemetry, if it is set up in this process: by a module of the user's that `tracing.setup` names, or by one that Node
 * was told to import. Which spans are recorded and where they go is for that to say; if there is none, nothing is followed.
 */
export async function tracingOf({ settings, origin }: Configuration): Promise<ServiceTracing | undefined> {
  const { "tracing.setup": setup, "tracing.roots": roots } = settings;
  if (setup !== undefined) await runSetup(setup, whereOf({ origin }, "tracing.setup"));
  const provider = registeredProvider();
  if (provider === undefined) {
    if (setup === undefined) return undefined;
    const what = "it registers no tracer provider with OpenTelemetry's API";
    throw new ConfigError([{ where: setup, what, help: "call trace.setGlobalTracerProvider there, or start() of its NodeSDK" }]);
  }
  return {
    jobs: otelTracing(roots === undefined ? {} : { roots }),
    requests: otelRequests(),
    flush: async () => {
      // What cannot be sent is lost; it keeps no process from ending.
      await provider.forceFlush?.().catch(() => {});
    },
  };
}

async function runSetup(module: string, where: string): Promise<void> {
  try {
    await importModule(module);
  } catch (error) {
    throw new ConfigError([{ where, ...loadFailure(module, error) }]);
  }
}

type FlushableProvider = TracerProvider & { readonly forceFlush?: () => Promise<void> };

/** What stands behind the API's stand-in; without one of the user's, that has nothing to delegate to. */
function registeredProvider(): FlushableProvider | undefined {
  const standIn = trace.getTracerProvider() as FlushableProvider & {
    readonly getDelegateTracer?: (name: string) => unknown;
    readonly getDelegate?: () => FlushableProvider;
  };
  if (standIn.getDelegateTracer === undefined) return standIn;
  return standIn.getDelegateTracer("pawl") === undefined ? undefined : standIn.getDelegate?.();
}
