import { listens } from "../config/judge.js";
import { whereOf } from "../config/problem.js";
import type { Configuration } from "../config/read.js";
import type { RequestFacts } from "../http/request-facts.js";
import type { Secrets } from "../secrets/secrets.js";
import { type CertificatePlaces, type CertificateSetting, readCertificates, watchCertificates } from "../tls/certificates.js";
import { Front } from "./front.js";

export interface Door {
  readonly front: Front;
  readonly address: string;
  close(deadline: AbortSignal): Promise<void>;
}

/** Opens the door, if there is to be one. Its certificates are those of the files, also after they were renewed. */
export async function openDoor(
  configuration: Configuration,
  secrets: Secrets,
  { trouble, onRequest }: { trouble(error: unknown): void; onRequest?: ((facts: RequestFacts) => void) | undefined },
): Promise<Door | undefined> {
  const { settings, origin } = configuration;
  if (!listens(settings, { origin })) return undefined;
  const places = certificatePlaces(configuration, secrets);
  const tls = places === undefined ? undefined : { secure: await readCertificates(places), askClients: places.clientCa !== undefined };
  const front = new Front(tls, onRequest);
  const address = await front.listen(settings.listen, origin("listen"));
  const unwatch = places === undefined ? () => {} : watchCertificates(places, (secure) => front.renew(secure), trouble);
  return {
    front,
    address,
    close(deadline) {
      unwatch();
      return front.close(deadline);
    },
  };
}

export function certificatePlaces(configuration: Configuration, secrets: Secrets): CertificatePlaces | undefined {
  const { "tls.cert": cert, "tls.key": key, "tls.clientCa": clientCa } = configuration.settings;
  if (cert === undefined || key === undefined) return undefined;
  const where = (name: CertificateSetting) => whereOf(configuration, name);
  return { cert, key: secrets.at(key), ...(clientCa === undefined ? {} : { clientCa }), where };
}
