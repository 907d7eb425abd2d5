import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { builtPawl, NodeProcess } from "../support/processes/child-process.js";
import { temporaryFolder } from "../support/temporary-folder.js";

const pawl = (...args: string[]) => new NodeProcess(builtPawl(), args);
/** of sysexits.h */
const EX_CONFIG = 78;

async function refused(...args: string[]): Promise<readonly string[]> {
  await using child = pawl(...args);
  expect(await child.exit(), child.lines.join("\n")).toBe(EX_CONFIG);
  return child.lines;
}

describe("pawl serve", { timeout: 120_000 }, () => {
  test("S7: refuses to listen beyond loopback without keys, and names the flag", async () => {
    expect(await refused("serve", "--store", "memory:", "--listen", "0.0.0.0:0")).toEqual([
      "pawl: --listen: 0.0.0.0 can be reached from other machines, and nobody would have to show a key; say --auth keys, or listen on 127.0.0.1",
    ]);
  });

  test("refuses an address that somebody has, and says who must move", async () => {
    const other = createServer();
    const port = await new Promise<number>((resolve) => {
      other.listen(0, "127.0.0.1", () => resolve((other.address() as { port: number }).port));
    });
    const lines = await refused("serve", "--store", "memory:", "--listen", `127.0.0.1:${port}`);
    expect(lines).toEqual([
      expect.stringMatching(new RegExp(`^pawl: --listen: 127\\.0\\.0\\.1:${port} is taken by another process; choose another`)),
    ]);
    other.close();
  });
});

test("pawl serve writes one JSON object a line where no person reads", { timeout: 120_000 }, async () => {
  await using child = pawl("serve", "--store", "memory:", "--listen", "127.0.0.1:0");
  await child.line(/"msg":"components: api, worker, maintenance"/);
  child.signal("SIGTERM");
  expect(await child.exit()).toBe(0);
  expect(child.lines.map((line) => JSON.parse(line) as { level: string; msg: string })).toContainEqual(
    expect.objectContaining({ level: "info", msg: expect.stringMatching(/^listening: http:\/\/127\.0\.0\.1:\d+$/) }),
  );
});

describe("pawl check", { timeout: 120_000 }, () => {
  test("says everything that is wrong, one line each, and exits 78", async () => {
    const plain = await refused("check", "--components", "api,wroker", "--store-password", "hunter2", "--tls-key", "file:nowhere.pem");
    expect(plain).toEqual([
      expect.stringMatching(/^pawl: --store-password: a secret does not stand here/),
      'pawl: --components: "wroker" is none of api, worker, maintenance; did you mean worker?',
      "pawl: --tls-key: it needs tls.cert; give that with --tls-cert",
    ]);
    expect(plain.join()).not.toContain("hunter2");
  });

  test("reads what a start would read: secrets, certificates, tasks", async () => {
    using folder = temporaryFolder();
    mkdirSync(folder.path, { recursive: true });
    const at = (name: string) => join(folder.path, name);
    writeFileSync(at("cert.pem"), "no certificate");
    writeFileSync(at("key.pem"), "no key");
    writeFileSync(at("broken.mjs"), "export const = 1");
    const args = [
      "--tls-cert",
      at("cert.pem"),
      "--tls-key",
      `file:${at("key.pem")}`,
      "--tasks",
      at("broken.mjs"),
      "--api-keys-pepper",
      `file:${at("nowhere")}`,
    ];
    const wrong = [
      expect.stringMatching(/^pawl: .*broken\.mjs: it cannot be loaded: /),
      expect.stringMatching(/^pawl: --api-keys-pepper: it cannot be read: .*ENOENT/),
      "pawl: --tls-cert: there is no certificate in it; give a certificate in PEM, followed by the rest of its chain",
      "pawl: --tls-key: there is no private key in it; give the certificate's private key in PEM",
    ];
    for (const command of ["check", "serve"]) expect(await refused(command, "--store", "memory:", ...args)).toEqual(wrong);
  });

  test("knows what a start would find at its end: the key of anchors, the set-up of tracing, defaults of queues", async () => {
    using folder = temporaryFolder();
    mkdirSync(folder.path, { recursive: true });
    const file = join(folder.path, "pawl.config.json");
    const config = {
      store: "memory:",
      audit: { anchors: "anchors", key: "file:nowhere" },
      tracing: { setup: "nowhere.mjs" },
      queueDefaults: { slow: { retri: 3 } },
      tls: { cert: "cert.pem", key: "file:key.pem" },
    };
    writeFileSync(file, JSON.stringify(config));
    const wrong = [
      expect.stringMatching(/^pawl: pawl\.config\.json: tracing\.setup: it cannot be loaded: /),
      expect.stringMatching(/^pawl: pawl\.config\.json: audit\.key: it cannot be read: .*ENOENT/),
      expect.stringMatching(/^pawl: pawl\.config\.json: tls\.cert: ENOENT/),
      expect.stringMatching(/^pawl: pawl\.config\.json: tls\.key: .*ENOENT/),
      expect.stringMatching(/^pawl: pawl\.config\.json: queueDefaults\.slow\.retri: there is no such option \(did you mean retry\?\)/),
    ];
    for (const command of ["check", "serve"]) expect(await refused(command, "--config", file)).toEqual(wrong);
  });

  test("calls a secret that cannot be read what whoever gave it calls it: a flag, a variable, a place in the file", async () => {
    using folder = temporaryFolder();
    mkdirSync(folder.path, { recursive: true });
    const file = join(folder.path, "pawl.config.json");
    writeFileSync(file, JSON.stringify({ encryption: { masterKeys: ["file:nowhere"] } }));
    await using child = new NodeProcess(builtPawl(), ["check", "--config", file, "--store-password", "env:NOWHERE"], {
      PAWL_STORE: "command:there-is-no-such-program",
      PAWL_STORE_LISTEN_URL: "env:NOWHERE",
      PAWL_API_KEYS_PEPPER: "file:nowhere",
    });
    expect(await child.exit()).toBe(78);
    expect(child.lines.map((line) => line.replace(/^pawl: (.*): it cannot be read: .*/, "$1"))).toEqual([
      "PAWL_STORE",
      "PAWL_STORE_LISTEN_URL",
      "--store-password",
      "pawl.config.json: encryption.masterKeys",
      "PAWL_API_KEYS_PEPPER",
    ]);
  });

  test("knows a pepper that is too short before a start would", async () => {
    using folder = temporaryFolder();
    mkdirSync(folder.path, { recursive: true });
    writeFileSync(join(folder.path, "pepper"), "short");
    const args = ["--store", "memory:", "--auth", "keys", "--api-keys-pepper", `file:${join(folder.path, "pepper")}`];
    for (const command of ["check", "serve"])
      expect(await refused(command, ...args)).toContain(
        "pawl: --api-keys-pepper: what is kept there is shorter than 16 bytes; openssl rand -base64 32 makes one",
      );
  });

  test.each([
    ["too short", "c2hvcnQ="],
    ["no base64", "?".repeat(44)],
    ["too long", Buffer.alloc(48, 7).toString("base64")],
  ])("knows a master key that is %s before a start would", async (_, key) => {
    using folder = temporaryFolder();
    mkdirSync(folder.path, { recursive: true });
    const at = (name: string) => join(folder.path, name);
    writeFileSync(at("good"), Buffer.alloc(32, 1).toString("base64"));
    writeFileSync(at("bad"), key);
    const args = ["--store", "memory:", "--encryption-master-keys", `file:${at("good")},file:${at("bad")}`];
    const wrong = `pawl: --encryption-master-keys: what file:${at("bad")} holds is not 32 bytes, as base64 or hex; openssl rand -base64 32 makes one`;
    for (const command of ["check", "serve"]) expect(await refused(command, ...args)).toEqual([wrong]);
  });

  test("notes limits whose path the schema of their task does not know, and refuses those that it rules out", async () => {
    using folder = temporaryFolder();
    mkdirSync(folder.path, { recursive: true });
    const file = join(folder.path, "mail.mjs");
    const schema = (more: object) =>
      `{ "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }), jsonSchema: { input: () => (${JSON.stringify({ properties: { to: {} }, ...more })}) } } }`;
    const write = (more: object) =>
      writeFileSync(
        file,
        `export const mail = { name: "mail", options: { limits: [{ key: "too", concurrency: 1 }] }, schema: ${schema(more)}, handler() {} };`,
      );
    write({});
    await using child = pawl("check", "--store", "memory:", "--tasks", file);
    expect(await child.exit()).toBe(0);
    expect(child.lines.toSorted()).toEqual([
      'note: mail.limits[0].key: "too" leads nowhere: the input\'s schema has no "too" (did you mean to?) there; jobs without it are not limited',
      "the configuration is good",
    ]);
    write({ additionalProperties: false });
    for (const command of ["check", "serve"])
      expect(await refused(command, "--store", "memory:", "--tasks", file)).toEqual([
        expect.stringMatching(/^pawl: mail\.limits\[0\]\.key: "too" leads nowhere: /),
      ]);
  });

  test("says that all is good, and which file it read", async () => {
    using folder = temporaryFolder();
    mkdirSync(folder.path, { recursive: true });
    const file = join(folder.path, "pawl.config.mjs");
    writeFileSync(file, "export default { store: 'memory:', components: ['api'], worker: { concurrency: 3 } }");
    await using child = pawl("check", "--config", file);
    expect(await child.exit()).toBe(0);
    expect(child.lines).toEqual([`the configuration is good: ${file}`]);
  });
});
