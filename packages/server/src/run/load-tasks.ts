import { existsSync, readdirSync, statSync } from "node:fs";
import { basename, join, relative, sep } from "node:path";
import type { AnyTask } from "pawl";
import type { CodeSchedule } from "pawl/service";
import { importModule, loadFailure } from "../config/file.js";
import { ConfigError, type Problem } from "../config/problem.js";

/** What the modules of the user's hold. */
export interface LoadedTasks {
  readonly files: readonly string[];
  readonly tasks: readonly AnyTask[];
  readonly schedules: readonly CodeSchedule[];
}

const MODULE_NAME = /\.[cm]?[jt]s$/;
const NOT_A_TASK_MODULE = /\.(d|test|spec)\.[cm]?[jt]s$/;
const SKIPPED_FOLDERS = new Set(["node_modules", "dist", ".git"]);

/** Loads every module that the places lead to, and gathers the tasks and schedules they export. */
export async function loadTaskFiles(paths: readonly string[], where: string): Promise<LoadedTasks> {
  const problems: Problem[] = [];
  const files: string[] = [];
  const exported = new Set<unknown>();
  for (const path of paths) {
    const found = filesOf(path);
    if (found.length === 0)
      problems.push({ where, what: `there is no module at ${path}`, help: "name a file, a folder, or a pattern with * and **" });
    for (const file of found) {
      files.push(file);
      try {
        for (const value of valuesOf((await importModule(file)) as object)) exported.add(value);
      } catch (error) {
        problems.push({ where: file, ...loadFailure(file, error) });
      }
    }
  }
  const tasks = [...exported].filter(isTask);
  const names = tasks.map(({ name }) => name);
  for (const name of new Set(names.filter((name, index) => names.indexOf(name) !== index))) {
    problems.push({ where, what: `two tasks are called ${name}`, help: "give each task its own name" });
  }
  if (problems.length === 0 && tasks.length === 0)
    problems.push({ where, what: "no module there exports a task", help: 'export const x = task("x", …)' });
  if (problems.length > 0) throw new ConfigError(problems);
  return { files, tasks, schedules: [...exported].filter(isSchedule) };
}

/** The modules at a place: a file, all of a folder, or those that match a pattern. Sorted, so that every start is alike. */
export function filesOf(path: string): readonly string[] {
  if (existsSync(path)) return statSync(path).isDirectory() ? modulesIn(path) : [path];
  const parts = path.split(sep);
  const fixed = parts.findIndex((part) => part.includes("*"));
  if (fixed === -1) return [];
  const folder = parts.slice(0, fixed).join(sep) || sep;
  const pattern = globPattern(parts.slice(fixed));
  return modulesIn(folder).filter((file) => pattern.test(relative(folder, file).split(sep).join("/")));
}

/** Whether it is code, by its name. That of tests and of types holds no tasks, but is code as well if it is imported. */
export function isModule(file: string): boolean {
  return MODULE_NAME.test(file);
}

/** The folder that a change at the place happens in. */
export function folderOf(path: string): string {
  const star = path.indexOf("*");
  const fixed = star === -1 ? path : path.slice(0, star);
  return existsSync(fixed) && statSync(fixed).isDirectory() ? fixed : join(fixed, "..");
}

function modulesIn(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return SKIPPED_FOLDERS.has(entry.name) ? [] : modulesIn(path);
      return isModule(entry.name) && !NOT_A_TASK_MODULE.test(basename(path)) ? [path] : [];
    })
    .sort();
}

/** `*` is any name or part of one, `**` any number of folders. */
function globPattern(parts: readonly string[]): RegExp {
  const patterns = parts.map((part) => (part === "**" ? "(?:[^/]+/)*" : `${part.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace(/\*+/g, "[^/]*")}/`));
  return new RegExp(`^${patterns.join("").replace(/\/$/, "")}$`);
}

/** Exports may be tasks and schedules, or lists of them. */
function* valuesOf(module: object): Iterable<unknown> {
  for (const value of Object.values(module)) {
    if (Array.isArray(value)) yield* value;
    else yield value;
  }
}

function isTask(value: unknown): value is AnyTask {
  const { name, handler, options } = Object(value) as Partial<AnyTask>;
  return typeof name === "string" && typeof handler === "function" && typeof options === "object";
}

function isSchedule(value: unknown): value is CodeSchedule {
  const { name, task, options } = Object(value) as Partial<CodeSchedule>;
  return typeof name === "string" && typeof options === "object" && (typeof task === "string" || isTask(task));
}
