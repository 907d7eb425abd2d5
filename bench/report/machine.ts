import { closeSync, fdatasyncSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { cpus, machine, release, totalmem, type } from "node:os";
import { join } from "node:path";

/** What the figures were measured on. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGB: number;
  readonly system: string;
  /** median time to write 8 KB and have it on the disk */
  readonly fsyncMs: number;
}

/** `folder` is where the servers keep their data: its disk is the one that counts. */
export function thisMachine(folder: string): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryGB: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()} ${machine()}`,
    fsyncMs: fsyncTime(folder),
  };
}

const PAGE = 8_192;
const SAMPLES = 41;

/** Overwrites one page again and again, as a write-ahead log does. */
function fsyncTime(folder: string): number {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `fsync-${process.pid}.tmp`);
  const file = openSync(path, "w");
  try {
    const page = Buffer.alloc(PAGE, 1);
    const times = Array.from({ length: SAMPLES }, () => {
      const began = performance.now();
      writeSync(file, page, 0, PAGE, 0);
      fdatasyncSync(file);
      return performance.now() - began;
    });
    const median = times.sort((a, b) => a - b)[SAMPLES >> 1] ?? Number.NaN;
    return Math.round(median * 1_000) / 1_000;
  } finally {
    closeSync(file);
    rmSync(path);
  }
}

export function machineText({ cpu, cores, memoryGB, system, fsyncMs }: Machine): string {
  return `${cpu}, ${cores} ${cores === 1 ? "core" : "cores"}, ${memoryGB} GB, ${system}, fsync ${fsyncMs} ms`;
}
