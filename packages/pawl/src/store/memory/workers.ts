import { compareText } from "../../core/lane.js";
import type { WorkerStore } from "../port-workers.js";
import type { Tables } from "./state.js";

export function memoryWorkers(tables: Tables): WorkerStore {
  const forgetSilent = () => {
    for (const [boot, { until }] of tables.workers) if (until <= tables.now) tables.workers.delete(boot);
  };
  return {
    publish: ({ name, boot }, serves, duration) =>
      tables.step(() => {
        forgetSilent();
        const since = tables.workers.get(boot)?.since ?? tables.now;
        tables.workers.set(boot, { name, boot, serves, since, until: tables.now + duration });
      }),
    retire: ({ boot }) => tables.step(() => void tables.workers.delete(boot)),
    live: () =>
      tables.step(() => {
        forgetSilent();
        return [...tables.workers.values()].sort((a, b) => compareText(a.name, b.name) || compareText(a.boot, b.boot));
      }),
  };
}
