import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { connect, type PeerCertificate, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { open } from "../../packages/pawl/src/index.js";
import { serviceOf } from "../../packages/pawl/src/service.js";
import { readConfiguration } from "../../packages/server/src/config/read.js";
import { prepare } from "../../packages/server/src/run/prepare.js";
import { type Service, startService } from "../../packages/server/src/run/service.js";
import { Secrets } from "../../packages/server/src/secrets/secrets.js";
import { eventually } from "../support/eventually.js";
import { temporaryFolder } from "../support/temporary-folder.js";

const folder = temporaryFolder();
const at = (name: string) => join(folder.path, name);
const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: folder.path, stdio: "pipe" });

function authority(name: string): void {
  openssl(
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-days",
    "2",
    "-subj",
    `/CN=${name}`,
    "-keyout",
    `${name}.key`,
    "-out",
    `${name}.pem`,
  );
}

function certificate(name: string, by: string, alternative: string, days = "2"): void {
  openssl(
    "req",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-subj",
    `/CN=${name}`,
    "-keyout",
    `${name}.key`,
    "-out",
    `${name}.csr`,
  );
  writeFileSync(at(`${name}.ext`), `subjectAltName=${alternative}\n`);
  openssl(
    "x509",
    "-req",
    "-in",
    `${name}.csr`,
    "-CA",
    `${by}.pem`,
    "-CAkey",
    `${by}.key`,
    "-CAcreateserial",
    "-days",
    days,
    "-extfile",
    `${name}.ext`,
    "-out",
    `${name}.pem`,
  );
}

interface Answer {
  readonly status: number | undefined;
  readonly body: { readonly code?: string };
}

describe("a service with mutual TLS", () => {
  let service: Service;
  let key: string;

  beforeAll(async () => {
    mkdirSync(folder.path, { recursive: true });
    authority("ours");
    authority("theirs");
    certificate("server", "ours", "IP:127.0.0.1");
    certificate("renewed", "ours", "IP:127.0.0.1");
    certificate("acme", "ours", "URI:spiffe://example.org/tenant/acme/worker/box-7");
    certificate("globex", "ours", "URI:spiffe://example.org/tenant/globex");
    certificate("stranger", "theirs", "URI:spiffe://example.org/tenant/acme");
    certificate("expired", "ours", "URI:spiffe://example.org/tenant/acme", "-1");
    writeFileSync(at("pepper"), "a pepper of sixteen bytes or more");
    const flags = {
      "store.url": "memory:",
      listen: "127.0.0.1:0",
      auth: "keys",
      "apiKeys.pepper": "file:pepper",
      "tls.cert": "server.pem",
      "tls.key": "file:server.key",
      "tls.clientCa": "ours.pem",
    };
    service = await startService(await readConfiguration({ flags, env: {}, folder: folder.path }), { env: {}, writeLine: () => {} });
    ({ secret: key } = await serviceOf(service.pawl).apiKeys.create({ name: "of acme", tenant: "acme", grants: [{ role: "operator" }] }));
  });
  afterAll(async () => {
    await service?.stop();
    folder[Symbol.dispose]();
  });

  const files = (name: string | undefined) => (name === undefined ? {} : { cert: readPem(`${name}.pem`), key: readPem(`${name}.key`) });
  const readPem = (name: string) => execFileSync("cat", [at(name)]);

  function get(path: string, client: string | undefined, authorization?: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const headers = authorization === undefined ? {} : { authorization };
      const outgoing = request(`${service.address}${path}`, { ca: readPem("ours.pem"), ...files(client), headers, agent: false }, (response) => {
        let text = "";
        response.on("data", (chunk) => {
          text += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode, body: text === "" ? {} : JSON.parse(text) }));
      });
      outgoing.on("error", reject);
      outgoing.end();
    });
  }

  test.each([
    ["no certificate", undefined],
    ["one of another authority", "stranger"],
    ["one that has expired", "expired"],
  ])("S8: ends the connection of a client with %s before any HTTP", async (_, client) => {
    await expect(get("/livez", client)).rejects.toThrow(/alert|ECONNRESET|socket hang up|EPROTO|EPIPE/);
  });

  test("S8: refuses a key of another tenant than the certificate's", async () => {
    for (const path of ["/v1/jobs", "/metrics"])
      expect(await get(path, "globex", `Bearer ${key}`), path).toMatchObject({ status: 403, body: { code: "certificate_mismatch" } });
  });

  test("takes the tenant's own key; without a key, the certificate is a worker's", async () => {
    expect(await get("/v1/jobs", "acme", `Bearer ${key}`)).toMatchObject({ status: 200 });
    expect(await get("/v1/jobs", "acme")).toMatchObject({ status: 403, body: { code: "forbidden" } });
    expect(await get("/v1/info", "acme")).toMatchObject({ status: 200 });
  });

  test("answers with a renewed certificate, without a new start", async () => {
    const before = await serial();
    for (const kind of ["pem", "key"]) copyFileSync(at(`renewed.${kind}`), at(`server.${kind}`));
    await eventually(
      () => "the renewed certificate",
      async () => (await serial()) !== before,
    );
    expect(await get("/livez", "acme")).toMatchObject({ status: 200 });
  });

  async function serial(): Promise<string> {
    const { hostname, port } = new URL(service.address as string);
    const socket = await new Promise<TLSSocket>((resolve, reject) => {
      const made = connect({ host: hostname, port: Number(port), ca: readPem("ours.pem"), ...files("acme") }, () => resolve(made));
      made.on("error", reject);
    });
    const { serialNumber } = socket.getPeerCertificate() as PeerCertificate;
    socket.destroy();
    return serialNumber;
  }
});

describe("certificates that no connection could be made with", () => {
  const own = temporaryFolder();
  const path = (name: string) => join(own.path, name);
  const FLAGS = { "store.url": "memory:", listen: "127.0.0.1:0" };
  type Flags = Readonly<Record<string, string>>;

  beforeAll(() => {
    mkdirSync(own.path, { recursive: true });
    const make = (...args: string[]) => execFileSync("openssl", args, { cwd: own.path, stdio: "pipe" });
    const EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    for (const [name, how] of Object.entries({ ours: EC, other: EC, rsa: ["-newkey", "rsa:2048"] }))
      make("req", "-x509", ...how, "-nodes", "-days", "2", "-subj", `/CN=${name}`, "-keyout", `${name}.key`, "-out", `${name}.pem`);
    make("req", "-new", "-key", "ours.key", "-subj", "/CN=old", "-out", "old.csr");
    make("x509", "-req", "-in", "old.csr", "-CA", "ours.pem", "-CAkey", "ours.key", "-CAcreateserial", "-days", "-1", "-out", "old.pem");
    make("pkey", "-in", "ours.key", "-aes256", "-passout", "pass:secret", "-out", "encrypted.key");
    make("ec", "-in", "ours.key", "-aes256", "-passout", "pass:secret", "-out", "encrypted-before.key");
    writeFileSync(path("behind.pem"), `${readFileSync(path("other.pem"))}${readFileSync(path("ours.pem"))}`);
    writeFileSync(path("broken.pem"), "-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----\n");
  });
  afterAll(() => own[Symbol.dispose]());

  const configuration = (flags: Flags) => readConfiguration({ flags: { ...FLAGS, ...flags }, env: {}, folder: own.path });
  const complaint = (promise: Promise<unknown>) =>
    promise.then(
      () => "none",
      (error: Error) => error.message,
    );

  const ENCRYPTED =
    "--tls-key: the key is encrypted, and nobody is asked for its passphrase; give it decrypted: openssl pkey -in encrypted.pem -out key.pem";
  const MISFIT = "--tls-cert: the certificate is not that of the key; give the certificate and the key that were made for each other";

  test.each([
    ["a key of another certificate", "ours.pem", "other.key", MISFIT],
    ["a key of another kind than the certificate's", "ours.pem", "rsa.key", MISFIT],
    [
      "a key that is that of a later certificate of the chain",
      "behind.pem",
      "ours.key",
      /^--tls-cert: the first certificate is not that of the key, a later one is;/,
    ],
    ["a certificate that has expired", "old.pem", "ours.key", /^--tls-cert: the certificate expired at 20\d\d-.*; renew it, or give another$/],
    ["a key with a passphrase", "ours.pem", "encrypted.key", ENCRYPTED],
    ["a key with a passphrase, as openssl wrote them before", "ours.pem", "encrypted-before.key", ENCRYPTED],
    ["a file that holds no certificate", "ours.key", "ours.key", /^--tls-cert: there is no certificate in it;/],
    ["a certificate that cannot be read", "broken.pem", "ours.key", /^--tls-cert: a certificate in it cannot be read: /],
    ["a file that holds no key", "ours.pem", "other.pem", /^--tls-key: there is no private key in it;/],
    ["a file that is not there", "ours.pem", "nowhere.key", /^--tls-key: .*ENOENT/],
  ])("%s is an error of the settings, of `check` and of a start", async (_, cert, key, words) => {
    const settings = await configuration({ "tls.cert": cert, "tls.key": `file:${key}` });
    const checked = await complaint(prepare(settings, new Secrets({})));
    expect(checked).toMatch(words);
    expect(await complaint(startService(settings, { env: {}, writeLine: () => {} }))).toBe(checked);
  });

  test("so are authorities that are none, of clients and of Postgres", async () => {
    const served = { "tls.cert": "ours.pem", "tls.key": "file:ours.key" };
    for (const [flags, words] of [
      [{ ...served, "tls.clientCa": "ours.key" }, /^--tls-client-ca: there is no certificate in it;/],
      [{ ...served, "tls.clientCa": "old.pem" }, /^--tls-client-ca: no certificate is valid now: the first expired at /],
      [{ "store.url": "postgres://me@db.example/app", "store.ca": "ours.key" }, /^--store-ca: there is no certificate in it;/],
      [{ "store.url": "postgres://me@db.example/app", "store.ca": "nowhere.pem" }, /^--store-ca: ENOENT/],
    ] as const)
      expect(await complaint(prepare(await configuration(flags), new Secrets({})))).toMatch(words);
    expect(await complaint(prepare(await configuration({ ...served, "tls.clientCa": "behind.pem" }), new Secrets({})))).toBe("none");
  });

  test("so are those that a client shows, before it looks for the service", async () => {
    const text = (name: string) => readFileSync(path(name), "utf8");
    for (const [tls, option] of [
      [{ cert: text("ours.pem"), key: text("rsa.key") }, "tls.cert"],
      [{ cert: text("ours.pem"), key: text("encrypted.key") }, "tls.key"],
      [{ ca: Buffer.from("none") }, "tls.ca"],
      [{ cert: text("ours.pem") }, "tls"],
    ] as const)
      await expect(open("https://127.0.0.1:9", { tls }), option).rejects.toMatchObject({ code: "option_invalid", details: { option } });
  });
});
