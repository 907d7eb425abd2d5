import type { JobVerb } from "../core/event.js";
import type { JobId } from "../core/id.js";
import type { Bus } from "../runtime/bus.js";
import type { Scope, Store } from "./port.js";
import type { Change } from "./port-jobs.js";

/** A store that tells the bus what people and programs do to jobs and lanes, if anybody hears it. */
export function telling(store: Store, bus: Bus): Store {
  const { jobs, lanes } = store;
  const told = <Rest extends readonly unknown[]>(verb: JobVerb, ask: (scope: Scope, id: JobId, ...rest: Rest) => Promise<Change>) => {
    return async (scope: Scope, id: JobId, ...rest: Rest): Promise<Change> => {
      if (!bus.hears("job.changed")) return ask(scope, id, ...rest);
      // Before, since afterwards it may be gone.
      const lane = (await jobs.get(scope, id))?.lane;
      const change = await ask(scope, id, ...rest);
      if (change.kind === "changed" && lane !== undefined) bus.emit("job.changed", { job: id, lane, verb, from: change.from, to: change.to });
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
      cancel: told("cancel", jobs.cancel),
      pause: told("pause", jobs.pause),
      resume: told("resume", jobs.resume),
      retry: told("retry", jobs.retry),
      redrive: told("redrive", jobs.redrive),
      drop: told("drop", jobs.drop),
    },
    lanes: {
      ...lanes,
      async pause(kind, name) {
        await lanes.pause(kind, name);
        bus.emit("lanes.paused", { kind, name });
      },
      async resume(kind, name) {
        await lanes.resume(kind, name);
        bus.emit("lanes.resumed", { kind, name });
      },
    },
  };
}
