import { readFile, stat } from "node:fs/promises";
import type { SecureContextOptions } from "node:tls";
import { type CertificateTexts, certificateFaults } from "pawl/service";
import { ConfigError, reasonOf, runAllChecks } from "../config/problem.js";
import type { Secret } from "../secrets/secret.js";

/** Where the API's certificates are. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: Secret;
  /** if set, a certificate of these is asked of every client */
  readonly clientCa?: string;
  /** what whoever gave them knows them by */
  where(name: CertificateSetting): string;
}

export type CertificateSetting = "tls.cert" | "tls.key" | "tls.clientCa";

/** How often the files are looked at, in ms: a renewed certificate is in use soon after. */
const CHECK_INTERVAL_MS = 2_000;

/** The certificates as they are now; fails with what is wrong with them. */
export async function readCertificates({ cert, key, clientCa, where }: CertificateFiles): Promise<SecureContextOptions> {
  const [chain, secret, ca] = await runAllChecks(
    () => readPem(cert, where("tls.cert")),
    () => key.read().catch((error: unknown) => wrong(where("tls.key"), reasonOf(error))),
    async () => (clientCa === undefined ? undefined : readPem(clientCa, where("tls.clientCa"))),
  );
  const settingOf = { cert: "tls.cert", key: "tls.key", ca: "tls.clientCa" } as const;
  refuseFaults({ cert: chain, key: secret, ...(ca === undefined ? {} : { ca }) }, (of) => where(settingOf[of]));
  return { cert: chain, key: secret, ...(ca === undefined ? {} : { ca }), minVersion: "TLSv1.2" };
}

/** Certificates that somebody else's is verified with. */
export async function checkAuthorities(path: string, where: string): Promise<void> {
  refuseFaults({ ca: await readPem(path, where) }, () => where);
}

function refuseFaults(texts: CertificateTexts, where: (of: keyof CertificateTexts) => string): void {
  const faults = certificateFaults(texts, Date.now());
  if (faults.length > 0) throw new ConfigError(faults.map(({ of, what, help }) => ({ where: where(of), what, help })));
}

function readPem(path: string, where: string): Promise<string> {
  return readFile(path, "utf8").catch((error: unknown) => wrong(where, reasonOf(error)));
}

function wrong(where: string, what: string): never {
  throw new ConfigError([{ where, what, help: "give the path of a file in PEM, and its key" }]);
}

/** Calls back with the certificates whenever they were changed, until the answer is called. Broken ones are told, and not used. */
export function watchCertificates(
  files: CertificateFiles,
  changed: (secure: SecureContextOptions) => void,
  onError: (error: unknown) => void,
): () => void {
  let seen: string | undefined;
  let reportedReason: string | undefined;
  const check = async () => {
    const version = [
      await fileVersion(files.cert),
      await files.key.read(),
      files.clientCa === undefined ? "" : await fileVersion(files.clientCa),
    ].join("\n");
    const before = seen;
    if (version === before) return;
    if (before !== undefined) changed(await readCertificates(files));
    seen = version;
    reportedReason = undefined;
  };
  const timer = setInterval(() => {
    check().catch((error: unknown) => {
      // Certificate and key are two files, replaced one after the other: it is looked again, and told once.
      if (reportedReason !== reasonOf(error)) onError(error);
      reportedReason = reasonOf(error);
    });
  }, CHECK_INTERVAL_MS);
  timer.unref();
  void check().catch(onError);
  return () => clearInterval(timer);
}

async function fileVersion(path: string): Promise<string> {
  const { ino, mtimeMs, size } = await stat(path);
  return `${ino} ${mtimeMs} ${size}`;
}
