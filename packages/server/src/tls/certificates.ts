import { readFile, stat } from "node:fs/promises";
import { createSecureContext, type SecureContextOptions } from "node:tls";
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
    () => file(where("tls.cert"), cert),
    () => key.read().catch((error: unknown) => wrong(where("tls.key"), reasonOf(error))),
    async () => (clientCa === undefined ? undefined : file(where("tls.clientCa"), clientCa)),
  );
  const secure: SecureContextOptions = { cert: chain, key: secret, ...(ca === undefined ? {} : { ca }), minVersion: "TLSv1.2" };
  try {
    // Says whether they are certificates at all, and whether the key is that of this one.
    createSecureContext(secure);
  } catch (error) {
    wrong(where("tls.cert"), `certificate and key do not serve: ${reasonOf(error)}`);
  }
  return secure;
}

function file(where: string, path: string): Promise<string> {
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
