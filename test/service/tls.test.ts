import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { connect, type PeerCertificate, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readConfiguration } from "../../packages/server/src/config/read.js";
import { type Service, startService } from "../../packages/server/src/serve/service.js";
import { eventually } from "../support/eventually.js";
import { temporaryFolder } from "../support/folder.js";

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
      "keys.pepper": "file:pepper",
      "tls.cert": "server.pem",
      "tls.key": "file:server.key",
      "tls.clientCa": "ours.pem",
    };
    service = await startService(await readConfiguration({ flags, env: {}, folder: folder.path }), { env: {}, say: () => {} });
    ({ text: key } = await service.pawl.keys.create({ name: "of acme", tenant: "acme", grants: [{ role: "operator" }] }));
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
      const asking = request(`${service.address}${path}`, { ca: readPem("ours.pem"), ...files(client), headers, agent: false }, (response) => {
        let text = "";
        response.on("data", (chunk) => {
          text += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode, body: text === "" ? {} : JSON.parse(text) }));
      });
      asking.on("error", reject);
      asking.end();
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
      expect(await get(path, "globex", `Bearer ${key}`), path).toMatchObject({ status: 403, body: { code: "identity_mismatch" } });
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
