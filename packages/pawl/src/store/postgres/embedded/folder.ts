import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { join, resolve } from "node:path";
import { pawlError } from "../../../core/values/error.js";
import type { Endpoint } from "./endpoint.js";

/** The folder a user names, and what we keep in it. */
export interface Folder {
  readonly path: string;
  /** PGDATA */
  readonly data: string;
  readonly log: string;
  /** one file per process that uses the server */
  readonly members: string;
  /** what makes the folder ours, and how its server is reached */
  readonly record: string;
}

/** What keeps the data: a folder made by one is refused by the other. */
export type Engine = "postgres" | "pglite";

interface FolderRecord {
  readonly engine: Engine;
  /** which folder this was written in: a copy of it must not take over the socket of the original */
  readonly place: string;
  readonly endpoint?: Endpoint;
}

/** Creates the folder if need be; throws `folder_invalid` when it is not one we may use. */
export function openFolder(given: string, engine: Engine = "postgres"): Folder {
  const wanted = resolve(given);
  try {
    // Others may pass through but not look: a server that runs as another user must reach its data, which is 0700.
    fs.mkdirSync(wanted, { recursive: true, mode: 0o711 });
    fs.accessSync(wanted, fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK);
  } catch (error) {
    throw pawlError("folder_invalid", { folder: wanted, reason: whyNot(error as NodeJS.ErrnoException) }, error);
  }
  const path = fs.realpathSync(wanted);
  const folder: Folder = {
    path,
    data: join(path, engine),
    log: join(path, "log"),
    members: join(path, "members"),
    record: join(path, "pawl.json"),
  };
  refuseForeign(folder, engine);
  return folder;
}

/** Where the folder's server listens, or did when it last ran. */
export function knownEndpoint(folder: Folder): Endpoint | undefined {
  const record = readRecord(folder);
  // On Windows nothing is taken over: a port in use is noticed, and the password belongs to the data.
  return process.platform === "win32" || record?.place === placeOf(folder) ? record?.endpoint : undefined;
}

export function rememberEndpoint(folder: Folder, endpoint: Endpoint): void {
  writeRecord(folder, { engine: "postgres", place: placeOf(folder), endpoint });
}

/** For an engine that nobody else connects to. */
export function rememberEngine(folder: Folder, engine: Engine): void {
  writeRecord(folder, { engine, place: placeOf(folder) });
}

function writeRecord(folder: Folder, record: FolderRecord): void {
  const draft = join(folder.path, `.pawl.json-${randomBytes(4).toString("hex")}`);
  fs.writeFileSync(draft, `${JSON.stringify(record, undefined, 2)}\n`, { flush: true });
  fs.renameSync(draft, folder.record);
}

/** As root in another user's folder: what we make there must stay usable for that user. */
export function giveToFolderOwner(folder: Folder, path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = fs.statSync(folder.path);
  fs.lchownSync(path, uid, gid);
}

/** Makes the entries of a folder survive power loss. (Windows cannot, and need not.) */
export function syncFolder(path: string): void {
  if (process.platform === "win32") return;
  const fd = fs.openSync(path, "r");
  fs.fsyncSync(fd);
  fs.closeSync(fd);
}

/** The record is the first thing we write (after the lock), so whatever else stands without it is not ours. */
function refuseForeign(folder: Folder, engine: Engine): void {
  const invalid = (reason: string) => pawlError("folder_invalid", { folder: folder.path, reason });
  const foreign = fs.readdirSync(folder.path).filter((name) => !name.startsWith(".") && !name.startsWith("lock."));
  if (foreign.length > 0 && !fs.existsSync(folder.record)) {
    throw invalid(`it holds ${foreign.slice(0, 3).join(", ")}, which Pawl did not make`);
  }
  const maker = readRecord(folder)?.engine ?? engine;
  if (maker !== engine) throw invalid(`it was made by ${maker}`);
}

/** What made the folder, if anything did: whoever opens it without a wish of their own gets the same again. */
export function madeBy(path: string): Engine | undefined {
  return readRecord({ record: join(resolve(path), "pawl.json") })?.engine;
}

function readRecord({ record }: Pick<Folder, "record">): Partial<FolderRecord> | undefined {
  try {
    return JSON.parse(fs.readFileSync(record, "utf8")) as Partial<FolderRecord>;
  } catch {
    return undefined;
  }
}

function placeOf(folder: Folder): string {
  const { dev, ino } = fs.statSync(folder.path);
  return `${dev}:${ino}`;
}

function whyNot(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case "EEXIST":
    case "ENOTDIR":
      return "it is a file, or lies below one";
    case "EACCES":
    case "EPERM":
      return "this user may not write to it";
    case "EROFS":
      return "it is on a read-only file system";
    default:
      return error.message;
  }
}
