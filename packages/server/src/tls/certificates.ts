import { readFile, stat } from "node:fs/promises";
import type { SecureContextOptions } from "node:tls";
import { type CertificateTexts, certificateFaults } from "pawl";
import { ConfigError, reasonOf, together } from "../config/problem.js";
import type { Secret } from "../secrets/secret.js";

/** Where the API's certificates are. */
export interface CertificatePlaces {
  readonly cert: string;
  readonly key: Secret;
  /** if set, a certificate of these is asked of every client */
  readonly clientCa?: string;
  /** what whoever gave them knows them by */
  where(name: CertificateSetting): string;
}

export type CertificateSetting = "tls.cert" | "tls.key" | "tls.clientCa";

/** How often the files are looked at, in ms: a renewed certificate is in use soon after. */
const LOOK = 2_000;

/** The certificates as they are now; fails with what is wrong with them. */
export async function readCertificates({ cert, key, clientCa, where }: CertificatePlaces): Promise<SecureContextOptions> {
  const [chain, secret, ca] = await together(
    () => readPem(cert, where("tls.cert")),
    () => key.read().catch((error: unknown) => wrong(where("tls.key"), reasonOf(error))),
    async () => (clientCa === undefined ? undefined : readPem(clientCa, where("tls.clientCa"))),
  );
  const named = { cert: "tls.cert", key: "tls.key", ca: "tls.clientCa" } as const;
  refuseFaults({ cert: chain, key: secret, ...(ca === undefined ? {} : { ca }) }, (of) => where(named[of]));
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
  places: CertificatePlaces,
  changed: (secure: SecureContextOptions) => void,
  trouble: (error: unknown) => void,
): () => void {
  let seen: string | undefined;
  let told: string | undefined;
  const look = async () => {
    const mark = [await markOf(places.cert), await places.key.read(), places.clientCa === undefined ? "" : await markOf(places.clientCa)].join("\n");
    const before = seen;
    if (mark === before) return;
    if (before !== undefined) changed(await readCertificates(places));
    seen = mark;
    told = undefined;
  };
  const timer = setInterval(() => {
    look().catch((error: unknown) => {
      // Certificate and key are two files, replaced one after the other: it is looked again, and told once.
      if (told !== reasonOf(error)) trouble(error);
      told = reasonOf(error);
    });
  }, LOOK);
  timer.unref();
  void look().catch(trouble);
  return () => clearInterval(timer);
}

async function markOf(path: string): Promise<string> {
  const { ino, mtimeMs, size } = await stat(path);
  return `${ino} ${mtimeMs} ${size}`;
}
