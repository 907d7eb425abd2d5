import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type Problem, reasonOf } from "./problem.js";

export const CONFIG_FILES = ["pawl.config.ts", "pawl.config.mts", "pawl.config.mjs", "pawl.config.js", "pawl.config.json"] as const;

/** What a configuration file says, before anything of it is believed. */
export interface ConfigFile {
  readonly path: string;
  /** what its relative paths are relative to */
  readonly folder: string;
  readonly value: unknown;
}

export type LoadedConfigFile = { readonly file?: ConfigFile } | { readonly problem: Problem };

/** Loads the file that is named, or the one in the folder, if there is one. */
export async function loadConfigFile(folder: string, namedPath: string | undefined): Promise<LoadedConfigFile> {
  const found = namedPath === undefined ? CONFIG_FILES.filter((name) => existsSync(join(folder, name))) : [namedPath];
  if (found.length > 1) return { problem: { where: found.join(", "), what: "there is more than one", help: "keep one, or name it with --config" } };
  const [name] = found;
  if (name === undefined) return {};
  const path = resolve(folder, name);
  try {
    return { file: { path, folder: dirname(path), value: await exportOf(path) } };
  } catch (error) {
    return { problem: { where: basename(path), ...loadFailure(path, error) } };
  }
}

async function exportOf(path: string): Promise<unknown> {
  if (extname(path) === ".json") return JSON.parse(await readFile(path, "utf8"));
  if (!existsSync(path)) throw Object.assign(new Error("there is no such file"), { code: "ENOENT" });
  const module = (await importModule(path)) as { readonly default?: unknown };
  if (!("default" in module)) throw new Error("it has no default export");
  return module.default;
}

/** Imports a module of the user's. */
export function importModule(path: string): Promise<unknown> {
  return import(pathToFileURL(path).href);
}

/** In words: why a module of the user's cannot be had. */
export function loadFailure(path: string, error: unknown): Pick<Problem, "what" | "help"> {
  const { code } = error as { readonly code?: unknown };
  if (code === "ERR_UNKNOWN_FILE_EXTENSION" && /\.m?ts$/.test(path)) {
    return {
      what: `Node ${process.versions.node} does not read TypeScript`,
      help: 'use Node 22.18 or newer, or set NODE_OPTIONS="--import tsx" with tsx installed, or write it as .mjs',
    };
  }
  if (code === "ENOENT") return { what: "there is no such file", help: "check the path" };
  return { what: `it cannot be loaded: ${reasonOf(error)}`, help: "mend it, and ask again with pawl check" };
}
