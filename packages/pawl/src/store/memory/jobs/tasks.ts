import type { TaskRecord } from "../../../core/jobs/task-record.js";
import type { TaskStore } from "../../port/jobs/tasks.js";
import type { Tables } from "../state.js";

export function memoryTasks(tables: Tables): TaskStore {
  const differs = (task: TaskRecord) => JSON.stringify(tables.tasks.get(task.name)) !== JSON.stringify(task);
  return {
    publish: (tasks) =>
      tables.step(() => {
        const changed = tasks.filter(differs);
        for (const task of changed) tables.tasks.set(task.name, task);
        return changed.length;
      }),
    get: async (names) => tables.step(() => names.flatMap((name) => tables.tasks.get(name) ?? [])),
  };
}
