import { checkDuration, checkObject, invalid } from "../check.js";
import type { CallOptions, EnqueueOptions } from "../options.js";
import type { WaitOptions } from "../scheduler.js";

interface CallParts {
  readonly job: EnqueueOptions | undefined;
  readonly wait: WaitOptions;
}

/** The options of the job and those of the wait. A mistake in either is found here, before a job is stored. */
export function splitCallOptions(options: CallOptions = {}): CallParts {
  const { wait, signal, ...job } = checkObject("options", options) as CallOptions & Pick<EnqueueOptions, "tx">;
  if (job.tx !== undefined) throw invalid("tx", "the job exists only when you commit: enqueue it, commit, and wait for its result");
  if (wait !== undefined) checkDuration("wait", wait);
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalid("signal", "it is not an AbortSignal");
  signal?.throwIfAborted();
  return {
    job: Object.keys(job).length === 0 ? undefined : job,
    wait: { ...(wait === undefined ? {} : { wait }), ...(signal === undefined ? {} : { signal }) },
  };
}
