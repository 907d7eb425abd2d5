import { listens } from "../config/check-combinations.js";
import { whereOf } from "../config/problem.js";
import type { Configuration } from "../config/read.js";
import type { RequestFacts } from "../http/request/request-facts.js";
import type { Secrets } from "../secrets/secrets.js";
import { type CertificateFiles, type CertificateSetting, readCertificates, watchCertificates } from "../tls/certificates.js";
import { HttpListener } from "./listener.js";

export interface OpenedListener {
  readonly listener: HttpListener;
  readonly address: string;
  close(deadline: AbortSignal): Promise<void>;
}

/** Opens the listener, if the settings ask for one. Its certificates are those of the files, also after they were renewed. */
export async function openListener(
  configuration: Configuration,
  secrets: Secrets,
  { onError, onRequest }: { onError(error: unknown): void; onRequest?: ((facts: RequestFacts) => void) | undefined },
): Promise<OpenedListener | undefined> {
  const { settings, origin } = configuration;
  if (!listens(settings, { origin })) return undefined;
  const files = certificateFiles(configuration, secrets);
  const tls = files === undefined ? undefined : { secure: await readCertificates(files), requestClientCertificates: files.clientCa !== undefined };
  const listener = new HttpListener(tls, onRequest);
  const address = await listener.listen(settings.listen, origin("listen"));
  const stopWatching = files === undefined ? () => {} : watchCertificates(files, (secure) => listener.renew(secure), onError);
  return {
    listener,
    address,
    close(deadline) {
      stopWatching();
      return listener.close(deadline);
    },
  };
}

export function certificateFiles(configuration: Configuration, secrets: Secrets): CertificateFiles | undefined {
  const { "tls.cert": cert, "tls.key": key, "tls.clientCa": clientCa } = configuration.settings;
  if (cert === undefined || key === undefined) return undefined;
  const where = (name: CertificateSetting) => whereOf(configuration, name);
  return { cert, key: secrets.at(key), ...(clientCa === undefined ? {} : { clientCa }), where };
}
