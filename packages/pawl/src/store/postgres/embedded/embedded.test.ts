import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { builtFile } from "../../../../../../test/support/processes/worker-process.js";
import { isPawlError } from "../../../core/values/error.js";
import { type Account, serverAccount } from "./account.js";
import { findBinaries } from "./binaries.js";
import { type EmbeddedConnection, type EmbeddedServer, nativePostgres, startEmbedded } from "./index.js";
import { readPostmaster } from "./postmaster.js";
import { isAlive, signal } from "./processes.js";
import { deadlineIn, until } from "./wait.js";

const isRoot = process.getuid?.() === 0;
const native = nativePostgres();
const repository = new URL("../../../../../..", import.meta.url).pathname;

let scratch: string;
let folder: string;
let template: string;
/** this folder's index as JavaScript: other processes start four times as fast */
let built: string;
const servers: EmbeddedServer[] = [];
const children: ChildProcess[] = [];

beforeAll(async () => {
  built = await builtFile("packages/pawl/src/store/postgres/embedded/index.ts");
  template = fs.mkdtempSync(join(tmpdir(), "pawl-test-"));
  if (native.ok) await (await startEmbedded(template)).release();
});

afterAll(() => fs.rmSync(template, { recursive: true }));

beforeEach(() => {
  scratch = fs.mkdtempSync(join(tmpdir(), "pawl-test-"));
  folder = join(scratch, "store");
});

/** Nothing may stay behind, whatever a test did: neither a child nor a server. */
afterEach(async () => {
  for (const child of children.splice(0)) if (child.pid) signal(child.pid, "SIGKILL");
  await Promise.all(servers.splice(0).map((server) => server.release().catch(() => {})));
  const left = readPostmaster(join(folder, "postgres"));
  if (left && isAlive(left.pid)) await (await startEmbedded(folder)).release();
  fs.rmSync(scratch, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
});

/** A folder that was used before: saves the seconds of a first start where it is not what is tested. */
function usedFolder(): string {
  copyFolder(template, folder);
  return folder;
}

function copyFolder(from: string, to: string): void {
  spawnSync("cp", ["-Rp", from, to]); // four times faster than fs.cpSync
}

async function start(path = folder): Promise<EmbeddedServer> {
  const server = await startEmbedded(path);
  servers.push(server);
  return server;
}

async function query(connection: EmbeddedConnection, sql: string): Promise<unknown> {
  const client = new pg.Client({ ...connection });
  client.on("error", () => {});
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, unknown>>(sql);
    return rows[0] && Object.values(rows[0])[0];
  } finally {
    await client.end();
  }
}

async function eventually(what: string, check: () => boolean, ms = 5_000): Promise<void> {
  if (!(await until(() => check() || undefined, deadlineIn(ms)))) throw new Error(`not within ${ms} ms: ${what}`);
}

interface Child {
  /** the answer of startEmbedded in the child */
  readonly server: Promise<{ pid: number; started: boolean; connection: EmbeddedConnection }>;
  release(): Promise<void>;
  /** it ends by itself, and does not leave before */
  exit(): Promise<void>;
  /** kill -9 of it and of all it started, except what left its process group */
  killGroup(): Promise<void>;
}

/** Another process that opens the folder, tells what it got, and leaves when told to. */
function startInChild(path: string, options: { account?: Account; cwd?: string } = {}): Child {
  const script = `
    const { startEmbedded } = await import(${JSON.stringify(built)});
    let server;
    process.stdin.once("data", async (word) => { if (word.toString() === "release\\n") await server.release(); process.exit(0); });
    server = await startEmbedded(${JSON.stringify(path)});
    const { pid, started, connection } = server;
    console.log(JSON.stringify({ pid, started, connection }));`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    cwd: options.cwd ?? repository,
    ...options.account,
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
  });
  children.push(child);
  let complaints = "";
  child.stderr.on("data", (chunk: Buffer) => {
    complaints += chunk.toString();
  });
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const server = new Promise<Awaited<Child["server"]>>((resolve, reject) => {
    createInterface(child.stdout).once("line", (line) => resolve(JSON.parse(line)));
    void exited.then(() => reject(new Error(`the child ended: ${complaints}`)));
  });
  server.catch(() => {}); // a test that kills the child early does not wait for it
  const end = async (word: string) => {
    child.stdin.write(`${word}\n`);
    await exited;
    if (child.exitCode !== 0) throw new Error(complaints);
  };
  return {
    server,
    release: () => end("release"),
    exit: () => end("exit"),
    async killGroup() {
      process.kill(-(child.pid ?? 0), "SIGKILL");
      await exited;
    },
  };
}

describe.skipIf(!native.ok)("the embedded server", () => {
  it("starts from nothing, durable and without a network port", async () => {
    const server = await start();
    expect(server).toMatchObject({ started: true, version: expect.stringMatching(/^18\.\d+$/) });
    expect(await query(server.connection, "select 1")).toBe(1);
    for (const setting of ["fsync", "synchronous_commit", "full_page_writes", "data_checksums"]) {
      expect(await query(server.connection, `show ${setting}`), setting).toBe("on");
    }
    expect(await query(server.connection, "show listen_addresses")).toBe("");
    expect(fs.statSync(server.connection.host).mode & 0o777).toBe(0o700);
    await server.release();
    expect(isAlive(server.pid)).toBe(false);
    expect(fs.existsSync(server.connection.host)).toBe(false);
  });

  it("is shared by processes, and the last one out stops it", async () => {
    const child = startInChild(usedFolder());
    const theirs = await child.server;
    const first = await start();
    const second = await start();
    expect(theirs.started).toBe(true);
    expect(first).toMatchObject({ started: false, pid: theirs.pid, connection: theirs.connection });
    expect(second.pid).toBe(theirs.pid);

    await first.release();
    await child.release();
    expect(await query(second.connection, "select 1")).toBe(1);
    await second.release();
    expect(isAlive(theirs.pid)).toBe(false);

    const again = await start();
    expect(again).toMatchObject({ started: true, connection: { database: "pawl" } });
  });

  it("is started once when many processes open a new folder at the same moment", async () => {
    const racers = await Promise.all([1, 2, 3].map(() => startInChild(folder)));
    const answers = await Promise.all(racers.map((racer) => racer.server));
    expect(answers.filter((answer) => answer.started)).toHaveLength(1);
    expect(new Set(answers.map((answer) => answer.pid)).size).toBe(1);
    await Promise.all(racers.map((racer) => racer.release()));
    expect(isAlive(answers[0]?.pid ?? 0)).toBe(false);
  });

  it("outlives the process group that started it and is adopted by the next process", async () => {
    const child = startInChild(usedFolder());
    const theirs = await child.server;
    await child.killGroup();
    expect(isAlive(theirs.pid)).toBe(true);
    const server = await start();
    expect(server).toMatchObject({ started: false, pid: theirs.pid, connection: theirs.connection });
    await server.release();
    expect(isAlive(theirs.pid)).toBe(false);
  });

  it("ends also when the last process exits without leaving, but not while another one is there", async () => {
    const child = startInChild(usedFolder());
    const { pid } = await child.server;
    const server = await start();
    await child.exit();
    expect(await query(server.connection, "select 1")).toBe(1);

    const last = startInChild(folder);
    await last.server;
    await server.release();
    expect(isAlive(pid)).toBe(true);
    await last.exit();
    await eventually("the server is gone", () => !isAlive(pid));
    expect(readPostmaster(join(folder, "postgres")), "by a shutdown, after which there is nothing to recover").toBeUndefined();
  });

  it("that a process was about to start ends with it", async () => {
    const child = startInChild(usedFolder());
    await eventually("a server starts", () => readPostmaster(join(folder, "postgres")) !== undefined);
    await child.exit();
    await eventually("no server is left", () => readPostmaster(join(folder, "postgres")) === undefined);
  });

  it("runs in two copies of one folder side by side", async () => {
    const original = await start(usedFolder());
    const copied = join(scratch, "copy");
    copyFolder(template, copied);
    const copy = await start(copied);
    expect(copy.connection.host).not.toBe(original.connection.host);
    expect(await query(original.connection, "select 1")).toBe(1);
  });

  it("starts where everything was killed and another process has the server's pid", async () => {
    const child = startInChild(usedFolder());
    const { pid, connection } = await child.server;
    await query(connection, "create table kept as select 42 as answer");
    await child.killGroup();
    signal(pid, "SIGKILL");
    await eventually("the server is dead", () => !isAlive(pid));
    const pidFile = join(folder, "postgres", "postmaster.pid");
    fs.writeFileSync(pidFile, fs.readFileSync(pidFile, "utf8").replace(/^\d+/, String(process.pid)));

    const server = await start();
    expect(server.started).toBe(true);
    expect(await query(server.connection, "select answer from kept")).toBe(42);
  });

  it("comes back at the same place within 3 seconds of kill -9, busy sessions and other members included", async () => {
    const child = startInChild(usedFolder());
    const { pid } = await child.server;
    const server = await start();
    const { connection } = server;
    await query(connection, "create table kept as select 42 as answer");
    const busy = query(connection, "select count(*) from generate_series(1, 2000000000)").catch((error: Error) => error);
    await pollQuery(connection, "select count(*)::int from pg_stat_activity where query like '%2000000000)'", (n) => n === 1);

    const killed = performance.now();
    signal(pid, "SIGKILL");
    await eventually("the server is dead", () => !isAlive(pid));
    await pollQuery(connection, "select answer from kept", (answer) => answer === 42);
    expect(performance.now() - killed).toBeLessThan(3_000);
    expect(await busy).toBeInstanceOf(Error);
    await eventually("the new pid is known", () => server.pid !== pid);

    await server.release();
    expect(await query(connection, "select answer from kept")).toBe(42);
    await child.release();
    expect(isAlive(server.pid)).toBe(false);
  });

  it("is restarted by ensureRunning when its socket was swept away", async () => {
    const server = await start(usedFolder());
    fs.rmSync(server.connection.host, { recursive: true });
    await Promise.all([server.ensureRunning(), server.ensureRunning()]);
    expect(await query(server.connection, "select 1")).toBe(1);
  });

  it("starts after a process was killed in the middle of the first start", async () => {
    const child = startInChild(folder);
    const drafts = () => (fs.existsSync(folder) ? fs.readdirSync(folder).filter((name) => name.startsWith("postgres.new-")) : []);
    await eventually("initdb is at work", () => drafts().some((name) => fs.existsSync(join(folder, name, "global"))));
    await child.killGroup();
    const server = await start();
    expect(server.started).toBe(true);
    expect(await query(server.connection, "select 1")).toBe(1);
  });

  it.skipIf(!isRoot || process.platform !== "linux")("works for root in a folder its user cannot reach", async () => {
    fs.chmodSync(scratch, 0o700);
    const deep = join(scratch, "a-rather-long-name-".repeat(8), "store");
    const server = await start(deep);
    expect(fs.statSync(join(deep, "postgres")).uid).not.toBe(0);
    await query(server.connection, "create table kept as select 42 as answer");
    await query(server.connection, "alter system set work_mem = '7MB'");
    await query(server.connection, "select pg_reload_conf()");
    await pollQuery(server.connection, "show work_mem", (value) => value === "7MB");

    const checkpointer = await query(server.connection, "select pid from pg_stat_activity where backend_type = 'checkpointer'");
    signal(checkpointer as number, "SIGKILL");
    await eventually("the checkpointer is dead", () => !isAlive(checkpointer as number));
    await pollQuery(server.connection, "select answer from kept", (answer) => answer === 42);
    await query(server.connection, "checkpoint");
  });

  it.skipIf(!isRoot)("works for an ordinary user in the current directory, and root leaves it theirs", async (test) => {
    const account = serverAccount() as Account;
    if (!canReach(account, repository)) return test.skip(`user ${account.uid} cannot reach ${repository}`);
    fs.chownSync(scratch, account.uid, account.gid);
    const child = startInChild("./store", { account, cwd: scratch });
    const theirs = await child.server;
    expect(theirs.started).toBe(true);
    const joining = await start();
    expect(joining.pid).toBe(theirs.pid);
    await child.release();
    await joining.release();

    const server = await start();
    const again = startInChild(folder, { account });
    expect(await again.server).toMatchObject({ started: false, pid: server.pid });
    await server.release();
    await again.release();
    expect(isAlive(server.pid)).toBe(false);
  });

  it.skipIf(!isRoot)("refuses a folder that an ordinary user may not write to", async (test) => {
    const account = serverAccount() as Account;
    if (!canReach(account, repository)) return test.skip(`user ${account.uid} cannot reach ${repository}`);
    fs.chmodSync(scratch, 0o755);
    await expect(startInChild(folder, { account }).server).rejects.toThrow(/may not write to it/);
  });

  it("refuses a folder that holds something else, a file, and data of another version", async () => {
    fs.mkdirSync(folder);
    fs.writeFileSync(join(folder, "thesis.txt"), "precious");
    await expect(start()).rejects.toSatisfy((error) => isPawlError(error, "folder_invalid") && /thesis\.txt/.test(error.message));
    expect(fs.readdirSync(folder)).toEqual(["thesis.txt"]);
    await expect(start(join(folder, "thesis.txt"))).rejects.toSatisfy((error) => isPawlError(error, "folder_invalid"));

    const old = join(scratch, "old");
    fs.mkdirSync(join(old, "postgres"), { recursive: true });
    fs.writeFileSync(join(old, "pawl.json"), "{}");
    fs.writeFileSync(join(old, "postgres", "PG_VERSION"), "17\n");
    await expect(start(old)).rejects.toSatisfy((error) => isPawlError(error, "folder_invalid") && /Postgres 17/.test(error.message));
  });

  // SIGSTOP and /proc.
  describe.skipIf(process.platform !== "linux")("a server that stops for ever", () => {
    /** The server of a process that is gone, in the state in which `how` left it. */
    async function leftStopping(how: (server: { readonly pid: number; readonly connection: EmbeddedConnection }) => Promise<void>): Promise<number> {
      const child = startInChild(usedFolder());
      const server = await child.server;
      await query(server.connection, "create table kept as select 1 as one");
      await how(server);
      signal(server.pid, "SIGINT");
      await child.killGroup();
      await eventually("it is stopping", () => readPostmaster(join(folder, "postgres"))?.status === "stopping" || !isAlive(server.pid), 10_000);
      return server.pid;
    }

    it("is ended at the next open, and started again, with all that it held", { timeout: 90_000 }, async () => {
      const pid = await leftStopping(async (server) => {
        const checkpointer = await query(server.connection, "select pid from pg_stat_activity where backend_type = 'checkpointer'");
        // The server asks it for a last checkpoint, which it never makes.
        signal(checkpointer as number, "SIGSTOP");
      });
      const server = await start();
      expect(server.started).toBe(true);
      expect(server.pid).not.toBe(pid);
      expect(isAlive(pid)).toBe(false);
      expect(await query(server.connection, "select one from kept")).toBe(1);
    });

    it("since one of its backends had crashed before is no longer in the way of the next open", { timeout: 90_000 }, async () => {
      const pid = await leftStopping(async (server) => {
        const client = new pg.Client({ ...server.connection });
        client.on("error", () => {});
        await client.connect();
        const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
        signal(rows[0]?.pid as number, "SIGKILL");
        await eventually("it starts anew", () => fs.readFileSync(join(folder, "log"), "utf8").includes("reinitializing"));
      });
      const server = await start();
      expect(server.started).toBe(true);
      expect(server.pid).not.toBe(pid);
      expect(await query(server.connection, "select one from kept")).toBe(1);
    });
  });

  it("says why it did not start", async () => {
    const failing = startEmbedded(usedFolder(), { settings: { shared_buffers: "nonsense" } });
    await expect(failing).rejects.toSatisfy((error) => isPawlError(error, "embedded_failed") && /shared_buffers/.test(error.message));
    const server = await start();
    expect(server.started).toBe(true);
  });
});

describe.skipIf(!native.ok)("the binaries", () => {
  it("run from a copy when the install script was skipped or the server's user cannot reach them", () => {
    const account = serverAccount();
    const { home } = findBinaries(account);
    const version = `0.0.0-test-${process.pid}`;
    const unreachable = join(scratch, "package", "native");
    fs.mkdirSync(join(scratch, "package"), { mode: 0o700 });
    const isLink = (path: string) => fs.lstatSync(path).isSymbolicLink();
    fs.cpSync(home, unreachable, { recursive: true, filter: (path) => !isLink(path) });
    fs.writeFileSync(join(scratch, "package", "package.json"), JSON.stringify({ version }));

    const copy = findBinaries(account, unreachable);
    try {
      expect(copy.home).toContain(version);
      expect(copy.major).toBe("18");
      expect(findBinaries(account, unreachable)).toBe(copy);
    } finally {
      fs.rmSync(copy.home, { recursive: true, force: true });
    }
  });
});

async function pollQuery(connection: EmbeddedConnection, sql: string, isDone: (answer: unknown) => boolean): Promise<void> {
  const deadline = deadlineIn(10_000);
  let last: unknown;
  while (!isDone(last)) {
    if (performance.now() > deadline) throw new Error(`${sql} still answers ${String(last)}`);
    last = await query(connection, sql).catch((error: Error) => error.message);
  }
}

function canReach(account: Account, path: string): boolean {
  return spawnSync(process.execPath, ["--eval", `fs.readdirSync(${JSON.stringify(path)})`], { ...account, cwd: "/" }).status === 0;
}
