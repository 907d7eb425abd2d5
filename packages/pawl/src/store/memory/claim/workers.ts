import { compareText } from "../../../core/jobs/lane.js";
import type { WorkerStore } from "../../port/claim/workers.js";
import type { Tables } from "../state.js";

export function memoryWorkers(tables: Tables): WorkerStore {
  const forgetSilent = () => {
    for (const [instance, { until }] of tables.workers) if (until <= tables.now) tables.workers.delete(instance);
  };
  return {
    publish: ({ name, instance }, serves, duration) =>
      tables.step(() => {
        forgetSilent();
        const since = tables.workers.get(instance)?.since ?? tables.now;
        tables.workers.set(instance, { name, instance, serves, since, until: tables.now + duration });
      }),
    retire: ({ instance }) => tables.step(() => void tables.workers.delete(instance)),
    live: () =>
      tables.step(() => {
        forgetSilent();
        return [...tables.workers.values()].sort((a, b) => compareText(a.name, b.name) || compareText(a.instance, b.instance));
      }),
  };
}
