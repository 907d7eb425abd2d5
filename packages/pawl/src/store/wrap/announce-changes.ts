import type { JobId } from "../../core/jobs/id.js";
import type { JobVerb } from "../../core/observe/event.js";
import type { Bus } from "../../runtime/process/bus.js";
import type { Scope, Store } from "../port/index.js";
import type { JobChangeResult, RedriveOptions } from "../port/jobs/jobs.js";

/** A store that tells the bus what people and programs do to jobs and lanes, if anybody hears it. */
export function announceChanges(store: Store, bus: Bus): Store {
  const { jobs, lanes } = store;
  const announcing = <How extends string | RedriveOptions | undefined>(
    verb: JobVerb,
    ask: (scope: Scope, id: JobId, how: How) => Promise<JobChangeResult>,
  ) => {
    return async (scope: Scope, id: JobId, how: How): Promise<JobChangeResult> => {
      if (!bus.hasListeners("job.changed")) return ask(scope, id, how);
      // Before, since afterwards it may be gone.
      const lane = (await jobs.get(scope, id))?.lane;
      const change = await ask(scope, id, how);
      const reason = typeof how === "string" ? how : how?.reason;
      if (change.kind === "changed" && lane !== undefined)
        bus.emit("job.changed", { job: id, lane, verb, from: change.from, to: change.to, ...(reason === undefined ? {} : { reason }) });
      return change;
    };
  };
  return {
    ...store,
    get engine() {
      return store.engine;
    },
    jobs: {
      ...jobs,
      cancel: announcing("cancel", jobs.cancel),
      pause: announcing("pause", jobs.pause),
      resume: announcing("resume", jobs.resume),
      promote: announcing("promote", jobs.promote),
      redrive: announcing("redrive", jobs.redrive),
      delete: announcing("delete", jobs.delete),
    },
    lanes: {
      ...lanes,
      async pause(kind, name, reason) {
        await lanes.pause(kind, name, reason);
        bus.emit("claims.paused", { kind, name, ...(reason === undefined ? {} : { reason }) });
      },
      async resume(kind, name, reason) {
        await lanes.resume(kind, name, reason);
        bus.emit("claims.resumed", { kind, name, ...(reason === undefined ? {} : { reason }) });
      },
    },
  };
}
