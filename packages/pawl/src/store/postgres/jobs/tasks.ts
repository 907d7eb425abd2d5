import type { StoredDefaults, TaskRecord } from "../../../core/jobs/task-record.js";
import { textArray } from "../connection/arrays.js";
import { type Db, NOW, statement } from "../connection/db.js";
import type { Queryable } from "../drivers/driver.js";

/** In the order of their names, so that two processes that start at once do not wait for each other in a circle. */
const PUBLISH = statement(
  "publish_tasks",
  `insert into pawl.task (name, defaults, published_at)
   select g.name, g.defaults::json, ${NOW} from unnest($2::text[], $3::text[]) as g(name, defaults) order by g.name
   on conflict (name) do update set defaults = excluded.defaults, published_at = excluded.published_at`,
);
const GET = statement("get_tasks", "select name, defaults::text from pawl.task where name = any($1::text[])");

/** Looks before it writes: most of the time nothing has changed since the last process started. */
export async function publishTasks(db: Db, tasks: readonly TaskRecord[]): Promise<number> {
  const published = new Map((await getTasks(db, namesOf(tasks))).map((task) => [task.name, defaultsText(task)]));
  const changed = tasks.filter((task) => published.get(task.name) !== defaultsText(task));
  if (changed.length > 0) await db.query(PUBLISH, [db.now(), textArray(namesOf(changed)), textArray(changed.map(defaultsText))]);
  return changed.length;
}

export async function getTasks(on: Queryable, names: readonly string[]): Promise<readonly TaskRecord[]> {
  if (names.length === 0) return [];
  const rows = await on.query<{ name: string; defaults: string }>(GET, [textArray(names)]);
  return rows.map(({ name, defaults }) => ({ name, defaults: JSON.parse(defaults) as StoredDefaults }));
}

function namesOf(tasks: readonly TaskRecord[]): readonly string[] {
  return tasks.map(({ name }) => name);
}

function defaultsText({ defaults }: TaskRecord): string {
  return JSON.stringify(defaults);
}
