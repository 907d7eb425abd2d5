import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { join } from "node:path";
import { type Folder, giveToFolderOwner } from "./folder.js";
import { isRunning, ownName } from "./processes.js";

/** One use of the folder's server. A process that opens the folder twice is two members. */
export type Member = string;

/** Call these under the folder's lock: who is last out decides whether the server stops. */
export function joinMembers(folder: Folder): Member {
  if (!fs.existsSync(folder.members)) {
    fs.mkdirSync(folder.members, { mode: 0o755 });
    giveToFolderOwner(folder, folder.members);
  }
  const member = `${ownName()}-${randomBytes(4).toString("hex")}`;
  fs.writeFileSync(join(folder.members, member), "");
  return member;
}

/** Answers whether nobody is left. Members whose process died without leaving count as gone. */
export function leaveMembers(folder: Folder, member: Member | undefined): boolean {
  if (!fs.existsSync(folder.members)) return true;
  let left = 0;
  for (const each of fs.readdirSync(folder.members)) {
    const process = each.slice(0, each.lastIndexOf("-"));
    if (each !== member && isRunning(process)) left += 1;
    else fs.rmSync(join(folder.members, each), { force: true });
  }
  return left === 0;
}
