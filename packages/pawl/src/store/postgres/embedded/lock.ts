import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { join } from "node:path";
import { pawlError } from "../../../core/values/error.js";
import type { Folder } from "./folder.js";
import { isRunning, ownName, type ProcessName, pidOf } from "./processes.js";
import { type Deadline, deadlineIn, isPast, until } from "./wait.js";

/**
 * Runs the work while no other process, and no other caller in this one, holds the folder's lock.
 *
 * The lock is a sequence of files lock.1, lock.2, …: the newest one names its holder, or is empty when released.
 * Whoever finds the newest one free, or its holder dead, may create the next; a file is created once, so one wins.
 * Nothing is ever taken away from under its name, which is what makes breaking a dead holder's lock safe: with a
 * single file, of two processes that find it stale, the slower one would delete the lock of the faster.
 */
export async function withLock<T>(folder: Folder, deadline: Deadline, work: () => Promise<T>): Promise<T> {
  const release = await acquire(folder, deadline);
  try {
    return await work();
  } finally {
    release();
  }
}

/** ms that a process which ends waits for the lock, at most */
const LAST_WAIT_MS = 100;

/**
 * The same for a process that ends, whose loop turns no more. What it held itself is in nobody's way any more. Where another
 * holds the lock for longer, the work is left: that one comes, and sees to the folder when it goes.
 */
export function withLockAtExit(folder: Folder, work: () => void): void {
  if (holderOf(folder, newest(folder)) === ownName()) {
    work();
    return;
  }
  const claim = claimOn(folder);
  try {
    const deadline = deadlineIn(LAST_WAIT_MS);
    let taken = tryToTake(folder, claim);
    while (!taken && !isPast(deadline)) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
      taken = tryToTake(folder, claim);
    }
    if (!taken) return;
    work();
    releaseLock(taken);
  } finally {
    fs.rmSync(claim, { force: true });
  }
}

/** A file is linked to its place when it already names us: nobody sees a lock without a holder. */
function claimOn(folder: Folder): string {
  const claim = join(folder.path, `lock.claim-${ownName()}-${randomBytes(4).toString("hex")}`);
  fs.writeFileSync(claim, ownName());
  return claim;
}

async function acquire(folder: Folder, deadline: Deadline): Promise<() => void> {
  const claim = claimOn(folder);
  try {
    const taken = await until(() => tryToTake(folder, claim), deadline);
    if (!taken) throw pawlError("folder_busy", { folder: folder.path, pid: pidOf(holderOf(folder, newest(folder))) });
    return () => releaseLock(taken);
  } finally {
    fs.rmSync(claim, { force: true });
  }
}

function tryToTake(folder: Folder, claim: string): string | undefined {
  const last = newest(folder);
  const holder = holderOf(folder, last);
  if (holder !== "" && isRunning(holder)) return undefined;
  const mine = pathOf(folder, last + 1);
  try {
    fs.linkSync(claim, mine);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return undefined;
    throw error;
  }
  // While we looked, others may have come and gone, and our number may be an old one made free by tidying up.
  if (newest(folder) !== last + 1) {
    fs.rmSync(mine, { force: true });
    return undefined;
  }
  tidyUp(folder, last);
  return mine;
}

function releaseLock(path: string): void {
  // The folder may have been deleted under us; then there is nothing left to release.
  if (fs.existsSync(path)) fs.truncateSync(path);
}

/** Removes locks before the given one (the newest always stays, see above) and claims of processes that died. */
function tidyUp(folder: Folder, before: number): void {
  for (const name of fs.readdirSync(folder.path)) {
    const claimant = /^lock\.claim-(.+)-/.exec(name)?.[1];
    const generation = generationOf(name);
    if (claimant ? !isRunning(claimant) : generation > 0 && generation < before) {
      fs.rmSync(join(folder.path, name), { force: true });
    }
  }
}

function newest(folder: Folder): number {
  return Math.max(0, ...fs.readdirSync(folder.path).map(generationOf));
}

function generationOf(name: string): number {
  return Number(/^lock\.(\d+)$/.exec(name)?.[1] ?? 0);
}

function holderOf(folder: Folder, generation: number): ProcessName {
  try {
    return fs.readFileSync(pathOf(folder, generation), "utf8");
  } catch {
    return "";
  }
}

function pathOf(folder: Folder, generation: number): string {
  return join(folder.path, `lock.${generation}`);
}
