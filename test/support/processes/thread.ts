import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Worker } from "node:worker_threads";
import { inject } from "vitest";
import { spawnThread as spawn, type ThreadOptions } from "../../../packages/pawl/src/runtime/io/thread.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/**
 * In place of `runtime/io/thread.ts` (vitest.config.ts): threads of tests run the JavaScript that their processes run. From
 * source each one loads a loader first, which takes it six times as long to start.
 */
export function spawnThread(from: string, file: string, options?: ThreadOptions): Worker {
  const path = relative(ROOT, fileURLToPath(from));
  if (path.startsWith("..")) return spawn(from, file, options); // another release, unpacked elsewhere
  const built = join(inject("built"), path.replace(/\.ts$/, ".js"));
  return spawn(pathToFileURL(built).href, file, options);
}
