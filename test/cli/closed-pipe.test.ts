import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { open } from "../../packages/pawl/src/index.js";
import { nativePostgres } from "../../packages/pawl/src/store/postgres/embedded/index.js";
import { readPostmaster } from "../../packages/pawl/src/store/postgres/embedded/postmaster.js";
import { isAlive } from "../../packages/pawl/src/store/postgres/embedded/processes.js";
import { eventually } from "../support/eventually.js";
import { builtPawl, NodeProcess, ShellProcess } from "../support/processes/child-process.js";
import { temporaryFolder } from "../support/temporary-folder.js";

const native = nativePostgres();

/** A folder with jobs enough to fill a pipe, and of another tenant so many that its export goes on for long after its reader has gone. */
async function filled(path: string): Promise<string> {
  const pawl = await open(path, { maintenance: false });
  try {
    const many = (count: number) => Array.from({ length: count }).fill("x".repeat(500));
    await pawl.enqueueMany("u", many(3_000), { tenant: "umbrella", delay: "1h" });
    const jobs = await pawl.enqueueMany("t", many(400), { tenant: "acme", delay: "1h" });
    return jobs[0]?.id as string;
  } finally {
    await pawl.close();
  }
}

const serverOf = (folder: string) => readPostmaster(join(folder, "postgres"))?.pid;

/** Nothing of what the folder's server was runs on. */
async function serversGone(folder: string, seen: ReadonlySet<number>): Promise<void> {
  await eventually("no server is left", () => serverOf(folder) === undefined && [...seen].every((pid) => !isAlive(pid)));
}

/** The servers of a folder, as they come and go. */
function watchServers(folder: string): { readonly seen: ReadonlySet<number>; stop(): void } {
  const seen = new Set<number>();
  const timer = setInterval(() => {
    const pid = serverOf(folder);
    if (pid !== undefined) seen.add(pid);
  }, 5);
  return { seen, stop: () => clearInterval(timer) };
}

describe.skipIf(!native.ok)(`what ends a command before its time${native.ok ? "" : ` (${native.reason})`}`, () => {
  const data = temporaryFolder();
  const home = join(data.path, "..");
  let job: string;

  beforeAll(async () => {
    job = await filled(data.path);
    mkdirSync(join(home, "tasks"));
    writeFileSync(join(home, "tasks", "t.mjs"), 'export const t = { name: "t", options: {}, schema: undefined, handler() {} };');
  });
  afterAll(() => data[Symbol.dispose]());

  const LISTEN = "--listen 127.0.0.1:0";
  const COMMANDS: readonly (readonly [name: string, args: (job: string) => string])[] = [
    ["jobs list", () => "jobs list --limit 400"],
    ["jobs list --json", () => "jobs list --limit 400 --json"],
    ["jobs show", (job) => `jobs show ${job}`],
    ["jobs watch, which does not end by itself", (job) => `jobs watch ${job}`],
    ["tenants export", () => "tenants export umbrella"],
    ["top --once", () => "top --once"],
    ["doctor", () => "doctor"],
    ["serve", () => `serve ${LISTEN}`],
    ["serve in lines", () => `serve ${LISTEN} --log-format lines`],
    ["dev", () => `dev ${LISTEN} tasks`],
    ["demo", () => "demo"],
  ];
  const READERS = ["| true", "| head -1", "2>&1 | head -1"] as const;
  // Each command with each reader would take minutes: they take turns.
  const CASES = COMMANDS.map(([name, args], index) => [name, READERS[index % READERS.length], args] as const);

  test.each(CASES)("a reader that has gone: pawl %s %s ends, and leaves no server behind", { timeout: 120_000 }, async (_, reader, args) => {
    const servers = watchServers(data.path);
    const line = `"${process.execPath}" "${builtPawl()}" ${args(job)} ${args(job) === "demo" ? data.path : `-s ${data.path}`}`;
    await using shell = new ShellProcess(`${line} ${reader}; echo "ended"`, home);
    await shell.line(/^ended/);
    servers.stop();
    await serversGone(data.path, servers.seen);
  });

  test.each(["jobs list --task t --limit 400", "tenants export umbrella"])(
    "a reader that has gone is told to the shell as other programs tell it: pawl %s ends with 141",
    { timeout: 120_000 },
    async (args) => {
      const line = `"${process.execPath}" "${builtPawl()}" ${args} -s ${data.path} | true; echo "ended \${PIPESTATUS[0]}"`;
      await using shell = new ShellProcess(line, "/");
      expect(await shell.line(/^ended/)).toBe("ended 141");
      expect(shell.lines).toEqual(["ended 141"]);
    },
  );

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)(
    "%s, to a command that does not hear of it, ends it, also while its server comes up, and leaves none behind",
    { timeout: 120_000 },
    async (signal, code) => {
      for (const status of ["starting", "ready"]) {
        const servers = watchServers(data.path);
        await using child = new NodeProcess(builtPawl(), ["jobs", "list", "-s", data.path]);
        await eventually(
          "its server is there",
          () =>
            readPostmaster(join(data.path, "postgres"))?.status === (status === "ready" ? "ready" : "starting") ||
            (status === "starting" && servers.seen.size > 0),
        );
        child.signal(signal);
        // One that is done before it hears is done.
        expect([code, 0]).toContain(await child.exit());
        servers.stop();
        await serversGone(data.path, servers.seen);
      }
    },
  );
});
