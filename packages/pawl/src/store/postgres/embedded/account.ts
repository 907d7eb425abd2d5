import * as fs from "node:fs";
import { join } from "node:path";
import { pawlError } from "../../../core/values/error.js";
import type { Folder } from "./folder.js";

/** The user the server runs as; undefined means: as ourselves. Spreads into the options of `spawn`. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Postgres refuses to run as root, so root hands the server to someone else: to the owner of the folder, so that
 * `sudo` does not take a user's folder away, and otherwise to a user without privileges.
 */
export function serverAccount(folder?: Folder, uid = process.getuid?.()): Account | undefined {
  // Windows has no such ids, and its server gives up an administrator's rights by itself.
  if (uid !== 0) return undefined;
  const account = (folder && ownerOf(folder)) ?? unprivileged(users());
  if (account === undefined) throw pawlError("embedded_unavailable", { reason: "Postgres does not run as root, and there is no user nobody" });
  return account;
}

/** Postgres insists on owning its data, alone. A backup that root copied back, say, becomes the server's. */
export function giveData(folder: Folder, account: Account | undefined): void {
  const { uid } = fs.statSync(folder.data);
  const wanted = account?.uid ?? process.getuid?.() ?? uid;
  if (uid !== wanted) {
    if (!account) throw pawlError("folder_invalid", { folder: folder.path, reason: `its data belongs to the user with id ${uid}` });
    chownTree(folder.data, account);
  }
  fs.chmodSync(folder.data, 0o700);
}

function ownerOf(folder: Folder): Account | undefined {
  const data = fs.statSync(folder.data, { throwIfNoEntry: false });
  if (data && data.uid > 0) return { uid: data.uid, gid: data.gid };
  const { uid } = fs.statSync(folder.path);
  return users().find((user) => user.uid === uid && user.uid > 0);
}

/** initdb looks the user up, so it needs an entry. (On macOS `nobody` is -2, which cannot own files.) */
export function unprivileged(known: readonly User[]): Account | undefined {
  for (const name of ["nobody", "daemon"]) {
    const user = known.find((each) => each.name === name && each.uid > 0);
    if (user) return { uid: user.uid, gid: user.gid };
  }
  return undefined;
}

interface User extends Account {
  readonly name: string;
}

function users(): readonly User[] {
  return fs.existsSync("/etc/passwd") ? usersIn(fs.readFileSync("/etc/passwd", "utf8")) : [];
}

export function usersIn(passwd: string): readonly User[] {
  return passwd.split("\n").map((line) => {
    const [name = "", , uid, gid] = line.split(":");
    return { name, uid: Number(uid), gid: Number(gid) };
  });
}

function chownTree(path: string, account: Account): void {
  fs.lchownSync(path, account.uid, account.gid);
  if (!fs.lstatSync(path).isDirectory()) return;
  for (const name of fs.readdirSync(path)) chownTree(join(path, name), account);
}
