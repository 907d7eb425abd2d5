import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfigError, problemLine } from "./problem.js";
import { type Configuration, readConfiguration, type Sources } from "./read.js";
import { SETTING_NAMES, variableOf } from "./settings.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pawl-config-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function read(sources: Partial<Sources> = {}): Promise<Configuration> {
  return readConfiguration({ flags: {}, env: {}, folder, ...sources });
}

/** The lines of what is wrong. */
async function complaints(sources: Partial<Sources>): Promise<readonly string[]> {
  try {
    await read(sources);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(problemLine);
    throw error;
  }
  return [];
}

const write = (name: string, text: string) => writeFileSync(join(folder, name), text);

describe("the configuration", () => {
  test("is the defaults where nobody says anything: every component, on loopback, in ./data", async () => {
    const { settings } = await read();
    expect(settings).toMatchObject({
      "store.url": { kind: "folder" },
      components: ["api", "worker", "maintenance"],
      listen: { host: "127.0.0.1", port: 7295 },
      auth: "none",
    });
  });

  test("takes objectives by task from the file as an object, and from a flag or variable as a text", async () => {
    write("pawl.config.json", JSON.stringify({ metrics: { objectives: { "mail.send": "2s", "*": 60_000 }, tenants: 5 } }));
    expect((await read()).settings).toMatchObject({ "metrics.objectives": { "mail.send": "2s", "*": 60_000 }, "metrics.tenants": 5 });
    const configuration = await read({ env: { PAWL_METRICS_OBJECTIVES: "mail.send=2s, *=5m" } });
    expect(configuration.settings["metrics.objectives"]).toEqual({ "mail.send": "2s", "*": "5m" });
  });

  test.each([
    ["mail.send", '"mail.send" is no name=value'],
    ["mail.send=soon", '"soon" is no duration'],
    ["", "is no name=value"],
    [["2s"], "a list is no table"],
    [7, "7 is no table"],
    [null, "null is no table"],
  ])("refuses objectives that are %j", async (objectives, says) => {
    expect((await complaints({ flags: { "metrics.objectives": objectives } })).join()).toContain(says);
  });

  test("takes a flag before the environment, that before the file, that before the default", async () => {
    write("pawl.config.json", JSON.stringify({ worker: { concurrency: 1, name: "file" }, listen: "127.0.0.1:1", log: { level: "warn" } }));
    const env = { PAWL_WORKER_CONCURRENCY: "2", PAWL_LISTEN: "127.0.0.1:2" };
    const { settings, origin } = await read({ env, flags: { "worker.concurrency": "3" } });
    expect(settings["worker.concurrency"]).toBe(3);
    expect(settings.listen.port).toBe(2);
    expect(settings["worker.name"]).toBe("file");
    expect([origin("worker.concurrency"), origin("listen"), origin("worker.name"), origin("auth")]).toEqual([
      "--worker-concurrency",
      "PAWL_LISTEN",
      "pawl.config.json: worker.name",
      undefined,
    ]);
  });

  test.each([
    ["mjs", "export default { store: { url: './jobs' }, components: ['api'], tasks: 'tasks/*.mjs', queueDefaults: { mail: { retry: 9 } } }"],
    ["json", '{ "store": { "url": "./jobs" }, "components": ["api"], "tasks": "tasks/*.mjs", "queueDefaults": { "mail": { "retry": 9 } } }'],
  ])("is read from pawl.config.%s, whose paths are relative to it", async (extension, text) => {
    write(`pawl.config.${extension}`, text);
    const { settings, queueDefaults } = await readConfiguration({
      flags: {},
      env: {},
      folder: tmpdir(),
      file: join(folder, `pawl.config.${extension}`),
    });
    expect(settings["store.url"]).toEqual({ kind: "folder", folder: join(folder, "jobs") });
    expect(settings.tasks).toEqual([join(folder, "tasks/*.mjs")]);
    expect(settings.components).toEqual(["api"]);
    expect(queueDefaults).toEqual({ mail: { retry: 9 } });
  });

  test("says all that is wrong at once, one line each: where, what, and what to do", async () => {
    write("pawl.config.json", '{ "lsten": "x", "store": { "pasword": "file:x" }, "worker": 3, "keep": { "dead": "soon" } }');
    const env = { PAWL_COMPONENTS: "api,workr", PAWL_LISTEM: "127.0.0.1:1" };
    expect(await complaints({ env, flags: { listen: "localhost", "worker.concurrency": "many" } })).toEqual([
      "pawl.config.json: lsten: there is no such setting; did you mean listen?",
      "pawl.config.json: store.pasword: there is no such setting; did you mean store.password?",
      "pawl.config.json: worker: it is no object; write its settings inside: worker.concurrency, worker.queues, worker.name, worker.mostLost",
      'PAWL_COMPONENTS: "workr" is none of api, worker, maintenance; did you mean worker?',
      '--listen: "localhost" is no address; write host:port, as in 127.0.0.1:7295 or [::1]:7295',
      '--worker-concurrency: "many" is no whole number from 1 to 100000; write one in digits',
      'pawl.config.json: keep.dead: "soon" is no duration; write one like "250ms", "30s", "5m", "24h" or "7d"',
      "PAWL_LISTEM: there is no such setting; did you mean PAWL_LISTEN?",
    ]);
  });

  test.each(["constructor", "__proto__"])("knows no setting %s, though every object has one", async (name) => {
    write("pawl.config.json", `{ "${name}": "x" }`);
    expect(await complaints({})).toEqual([expect.stringContaining(`pawl.config.json: ${name}: there is no such setting`)]);
  });

  test("knows a variable for every setting, and leaves alone what Kubernetes, references and clients put there", async () => {
    const kubernetes = {
      PAWL_SERVICE_HOST: "10.0.0.1",
      PAWL_PORT: "tcp://10.0.0.1:80",
      PAWL_PORT_80_TCP_ADDR: "10.0.0.1",
      PAWL_DB_SERVICE_PORT_PG: "5432",
    };
    const referred = { PAWL_SECRET: "hunter2", PAWL_STORE: "postgres://me@localhost/app", PAWL_STORE_PASSWORD: "env:PAWL_SECRET" };
    expect(await complaints({ env: { ...kubernetes, ...referred } })).toEqual([]);
    expect(await complaints({ env: { PAWL_URL: "http://127.0.0.1:7295", PAWL_API_KEY: "pawl_live_x" } })).toEqual([]);
    const names = SETTING_NAMES.map(variableOf);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toContain("PAWL_TLS_CLIENT_CA");
  });

  test("refuses two files, a named one that is not there, and one that exports nothing", async () => {
    expect(await complaints({ file: "nowhere.mjs" })).toEqual(["nowhere.mjs: there is no such file; check the path"]);
    write("pawl.config.mjs", "export const store = './x'");
    expect(await complaints({})).toEqual([expect.stringMatching(/^pawl\.config\.mjs: it cannot be loaded: it has no default export; /)]);
    write("pawl.config.json", "{}");
    expect(await complaints({})).toEqual(["pawl.config.mjs, pawl.config.json: there is more than one; keep one, or name it with --config"]);
  });

  test("says in one line what is wrong with a file that does not parse", async () => {
    write("pawl.config.json", "{ store: ");
    expect(await complaints({})).toEqual([expect.stringMatching(/^pawl\.config\.json: it cannot be loaded: .*; mend it/)]);
  });
});

describe("what does not go together", () => {
  test("S7: listening beyond loopback without keys is refused, and the flag that mends it is named", async () => {
    const [line] = await complaints({ flags: { listen: "0.0.0.0:7295" } });
    expect(line).toBe(
      "--listen: 0.0.0.0 can be reached from other machines, and nobody would have to show a key; say --auth keys, or listen on 127.0.0.1",
    );
    for (const listen of ["192.168.1.2:80", "[::]:80", "example.org:80"]) expect(await complaints({ flags: { listen } })).toHaveLength(1);
    for (const listen of ["127.0.0.1:80", "[::1]:80", "localhost:80", "127.1.2.3:0"]) expect(await complaints({ flags: { listen } })).toEqual([]);
    expect(await complaints({ flags: { listen: "0.0.0.0:80", auth: "keys", "apiKeys.pepper": "env:P" } })).toEqual([]);
    // Where there is no API there are metrics, which name tenants and tasks of everybody.
    expect(await complaints({ flags: { listen: "0.0.0.0:80", components: "worker" } })).toHaveLength(1);
  });

  test("it is told beside what is wrong by itself, and not where it only follows from that", async () => {
    const listen = "0.0.0.0:7295";
    const open = expect.stringMatching(/^--listen: 0\.0\.0\.0 can be reached/);
    expect(await complaints({ flags: { listen }, env: { PAWL_LISTEM: "1" } })).toEqual([expect.stringMatching(/^PAWL_LISTEM: /), open]);
    expect(await complaints({ flags: { listen, "log.level": "trace" } })).toEqual([expect.stringMatching(/^--log-level: /), open]);
    expect(await complaints({ flags: { listen, auth: "kees" } })).toEqual([expect.stringMatching(/^--auth: "kees" is none of/)]);
    expect(await complaints({ flags: { auth: "keys", "apiKeys.pepper": "plain" } })).toEqual([expect.stringMatching(/^--api-keys-pepper: a secret/)]);
  });

  test("keys without the secret they are hashed with, and halves of a certificate", async () => {
    const listen = "127.0.0.1:80";
    for (const flags of [{ auth: "keys" }, { auth: "keys", components: "worker", listen }])
      expect(await complaints({ flags })).toEqual([expect.stringMatching(/^--auth: .*--api-keys-pepper file:PATH/)]);
    expect(await complaints({ flags: { auth: "keys", components: "worker" } }), "it answers nobody").toEqual([]);
    expect(await complaints({ flags: { "tls.cert": "a.pem" } })).toEqual(["--tls-cert: it needs tls.key; give that with --tls-key"]);
    expect(await complaints({ flags: { "tls.key": "file:a.pem" } })).toEqual(["--tls-key: it needs tls.cert; give that with --tls-cert"]);
    expect(await complaints({ flags: { "tls.clientCa": "ca.pem" } })).toEqual(["--tls-client-ca: it needs tls.cert; give that with --tls-cert"]);
  });

  test("proxies are networks, from a flag, a variable or the file, and never everybody", async () => {
    write("pawl.config.json", '{ "trustedProxies": ["10.0.0.0/8", "::1"] }');
    const ten = { address: "10.0.0.0", prefix: 8, family: "ipv4" };
    expect((await read()).settings.trustedProxies).toEqual([ten, { address: "::1", prefix: 128, family: "ipv6" }]);
    expect((await read({ env: { PAWL_TRUSTED_PROXIES: "10.0.0.0/8" } })).settings.trustedProxies).toEqual([ten]);
    expect(await complaints({ flags: { trustedProxies: "10.0.0.0/8,proxy.internal" } })).toEqual([
      '--trusted-proxies: "proxy.internal" is no network; write one like 10.0.0.0/8 or fd00::/8, or one address',
    ]);
    expect(await complaints({ flags: { trustedProxies: "0.0.0.0/0" } })).toEqual([
      expect.stringMatching(/^--trusted-proxies: everybody would be believed/),
    ]);
  });

  test("a secret that stands in a flag, a variable or the file is refused, and not repeated", async () => {
    write("pawl.config.json", '{ "apiKeys": { "pepper": "hunter2-file" } }');
    const lines = await complaints({ env: { PAWL_TLS_KEY: "hunter2-env" }, flags: { "store.password": "hunter2-flag" } });
    expect(lines).toEqual([
      "--store-password: a secret does not stand here in plain text; say where it is kept: file:PATH, env:NAME or command:PROGRAM ARGUMENTS",
      "pawl.config.json: apiKeys.pepper: a secret does not stand here in plain text; say where it is kept: file:PATH, env:NAME or command:PROGRAM ARGUMENTS",
      "PAWL_TLS_KEY: a secret does not stand here in plain text; say where it is kept: file:PATH, env:NAME or command:PROGRAM ARGUMENTS",
    ]);
  });

  test.each(["postgres://me:hunter2@localhost/app", "postgres://localhost/app?user=me&password=hunter2"])(
    "a password in the URL is for the environment only: %s",
    async (store) => {
      const lines = await complaints({ flags: { "store.url": store } });
      expect(lines).toEqual([expect.stringMatching(/^--store: the URL holds a password; take it out and say --store-password file:PATH/)]);
      expect(lines.join()).not.toContain("hunter2");
      expect(await complaints({ env: { PAWL_STORE: store } })).toEqual([]);
    },
  );

  test("S53: a store elsewhere is not reached unverified, unless that is said", async () => {
    const far = "postgres://me@db.example/app?sslmode=no-verify";
    expect(await complaints({ flags: { "store.url": far } })).toEqual([
      "--store: its URL asks for a connection to db.example that verifies nobody; leave ssl and sslmode out of it, or say --store-tls off",
    ]);
    expect(await complaints({ flags: { "store.url": far, "store.tls": "off" } })).toEqual([]);
    expect(await complaints({ env: { NODE_TLS_REJECT_UNAUTHORIZED: "0" } })).toEqual([expect.stringMatching(/^NODE_TLS_REJECT_UNAUTHORIZED: /)]);
  });

  test("what is for a Postgres of yours, where the store is a folder", async () => {
    expect(await complaints({ flags: { "store.password": "env:X", "store.schema": "jobs" } })).toEqual([
      "--store-password: it is for a Postgres of yours, and the store is none; leave it out, or say --store postgres://…",
      "--store-schema: it is for a Postgres of yours, and the store is none; leave it out, or say --store postgres://…",
    ]);
    expect(await complaints({ flags: { "store.url": "redis://localhost" } })).toEqual([
      expect.stringMatching(/^--store: redis:\/\/ is no store Pawl knows; /),
    ]);
  });
});
