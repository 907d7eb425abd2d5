import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { pawlError } from "../../../core/values/error.js";
import { giveData } from "./account.js";
import type { Endpoint } from "./endpoint.js";
import { syncFolder } from "./folder.js";
import { type Command, dataCommand, type Site } from "./site.js";

export const USER = "pawl";
export const DATABASE = "pawl";

const DRAFT = "postgres.new-";

/** Makes the data folder if there is none. Under another name first: half a one never counts. */
export async function initialise(site: Site, endpoint: Endpoint): Promise<void> {
  const { folder, account } = site;
  removeDrafts(site);
  if (fs.existsSync(folder.data)) return;
  const draft = join(folder.path, `${DRAFT}${randomBytes(4).toString("hex")}`);
  fs.mkdirSync(draft, { mode: 0o700 });
  if (account) fs.chownSync(draft, account.uid, account.gid);
  await createCluster(site, draft, endpoint);
  fs.renameSync(draft, folder.data);
  // Without this, power loss could undo the renaming, and the next start would sweep the data away as a draft.
  syncFolder(folder.path);
}

/** Throws `folder_invalid` for data that our server cannot work on: another user's, or another major version's. */
export function checkData({ folder, binaries, account }: Site): void {
  if (!fs.existsSync(folder.data)) return;
  giveData(folder, account);
  const file = join(folder.data, "PG_VERSION");
  const made = fs.existsSync(file) ? fs.readFileSync(file, "utf8").trim() : "nothing known";
  if (made === binaries.major) return;
  const reason = `its data was made by Postgres ${made}, and this Pawl brings ${binaries.major}`;
  throw pawlError("folder_invalid", { folder: folder.path, reason });
}

/** The locale comes with Postgres itself, so that order and case never depend on the machine. */
async function createCluster(site: Site, data: string, endpoint: Endpoint): Promise<void> {
  const secret = join(site.folder.path, `.secret-${randomBytes(4).toString("hex")}`);
  const login = endpoint.password ? ["--auth=scram-sha-256", `--pwfile=${secret}`] : ["--auth=trust"];
  const locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
  const options = [`--username=${USER}`, "--no-instructions", ...login, ...locale];
  try {
    if (endpoint.password) fs.writeFileSync(secret, endpoint.password, { mode: 0o600 });
    await run(
      site,
      dataCommand(site, data, "initdb", (path) => ["-D", path, ...options]),
    );
    const single = dataCommand(site, data, "postgres", (path) => ["--single", "-D", path, "postgres"]);
    // Postgres looks for tables in a schema of the user's name first: a handler's own "job" must not be ours.
    await run(site, single, `create database ${DATABASE}\nalter role ${USER} set search_path = public\n`);
  } finally {
    fs.rmSync(secret, { force: true });
  }
}

async function run(site: Site, command: Command, input = ""): Promise<void> {
  const child = spawn(command.file, command.args, { ...command.options, stdio: ["pipe", "pipe", "pipe"] });
  child.stdin.on("error", () => {}); // it ended without reading: its exit code says why
  child.stdin.end(input);
  const ended = new Promise<number | string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code, signal) => resolve(code ?? signal ?? 0));
  });
  const [result, output, complaints] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  if (result === 0) return;
  const { path, log } = site.folder;
  fs.appendFileSync(log, `${command.file} ended with ${result}\n${output}${complaints}`);
  const reason = complaints.trim().split("\n").at(-1) || `it ended with ${result}`;
  throw pawlError("embedded_failed", { folder: path, log, reason });
}

/** Left by a process that was killed. Its initdb may still be writing for a moment: then the next start sweeps. */
function removeDrafts({ folder }: Site): void {
  for (const name of fs.readdirSync(folder.path).filter((each) => each.startsWith(DRAFT))) {
    try {
      fs.rmSync(join(folder.path, name), { recursive: true, force: true, maxRetries: 3 });
    } catch {
      // still being written
    }
  }
}
