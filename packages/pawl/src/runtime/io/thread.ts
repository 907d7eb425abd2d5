import { Worker, type WorkerOptions } from "node:worker_threads";

export type ThreadOptions = Pick<WorkerOptions, "workerData" | "transferList" | "name" | "resourceLimits">;

/**
 * Starts a thread from a file beside the caller's: `spawnThread(import.meta.url, "./x-thread.js", …)`. The name is that
 * of the compiled file; where the caller runs from its TypeScript source, so does the thread.
 */
export function spawnThread(from: string, file: string, options: ThreadOptions = {}): Worker {
  // The parent's flags may be for its main thread only (a test runner's, say), so a thread starts without them.
  const plain = { ...options, execArgv: [] };
  if (!from.endsWith(".ts")) return new Worker(new URL(file, from), plain);
  const source = new URL(file.replace(/\.js$/, ".ts"), from);
  return new Worker(new URL("./thread-source.mjs", import.meta.url), { ...plain, argv: [source.href] });
}
