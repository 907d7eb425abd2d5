import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";

/** Texts in PEM, as `node:tls` names them. */
export interface CertificateTexts {
  /** a certificate, followed by the rest of its chain */
  readonly cert?: string;
  /** its private key */
  readonly key?: string;
  /** certificates that others' are verified with */
  readonly ca?: string;
}

export interface CertificateFault {
  readonly of: keyof CertificateTexts;
  readonly what: string;
  readonly help: string;
}

const HELP: Readonly<Record<keyof CertificateTexts, string>> = {
  cert: "give a certificate in PEM, followed by the rest of its chain",
  key: "give the certificate's private key in PEM",
  ca: "give certificates in PEM",
};

/**
 * What would keep every connection from being made, found before there is one. OpenSSL alone does not find it: it takes a key of
 * another kind than the certificate's, a certificate that has expired, and authorities that are none.
 */
export function certificateFaults({ cert, key, ca }: CertificateTexts, now: number): readonly CertificateFault[] {
  const faults: CertificateFault[] = [];
  const addFault = (of: keyof CertificateTexts, what: string, help = HELP[of]) => faults.push({ of, what, help });
  const chain = cert === undefined ? [] : certificatesIn(cert, (what) => addFault("cert", what));
  const own = chain[0];
  const untimely = own && outOfTime(own, now);
  if (untimely !== undefined) addFault("cert", `the certificate ${untimely}`, "renew it, or give another");
  const secret = key === undefined ? undefined : keyIn(key, (what, help) => addFault("key", what, help));
  if (own !== undefined && secret !== undefined && !own.checkPrivateKey(secret)) {
    const behind = chain.some((other) => other.checkPrivateKey(secret));
    if (behind) addFault("cert", "the first certificate is not that of the key, a later one is", "put the key's own certificate first");
    else addFault("cert", "the certificate is not that of the key", "give the certificate and the key that were made for each other");
  }
  const authorities = ca === undefined ? [] : certificatesIn(ca, (what) => addFault("ca", what));
  const [late] = authorities.map((one) => outOfTime(one, now));
  if (late !== undefined && authorities.every((one) => outOfTime(one, now) !== undefined))
    addFault("ca", `no certificate is valid now: the first ${late}`, "give one that is");
  return faults.length > 0 ? faults : refusedByOpenssl({ cert, key, ca });
}

/** Of all kinds of PEM in a text, the certificates. */
function certificatesIn(text: string, addFault: (what: string) => void): readonly X509Certificate[] {
  const blocks = text.match(/-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[\s\S]*?-----END (?:X509 |TRUSTED )?CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) addFault("there is no certificate in it");
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch (error) {
    addFault(`a certificate in it cannot be read: ${(error as Error).message}`);
    return [];
  }
}

function keyIn(text: string, addFault: (what: string, help?: string) => void): KeyObject | undefined {
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(text)) {
    addFault("the key is encrypted, and nobody is asked for its passphrase", "give it decrypted: openssl pkey -in encrypted.pem -out key.pem");
    return undefined;
  }
  try {
    return createPrivateKey(text);
  } catch {
    // OpenSSL's own words are about its decoders.
    addFault("there is no private key in it");
    return undefined;
  }
}

function outOfTime({ validFrom, validTo }: X509Certificate, now: number): string | undefined {
  const at = (text: string) => new Date(Date.parse(text)).toISOString();
  if (Date.parse(validTo) < now) return `expired at ${at(validTo)}`;
  if (Date.parse(validFrom) > now) return `is not valid before ${at(validFrom)}`;
  return undefined;
}

/** A key that is too weak, and whatever else it does not take. */
function refusedByOpenssl({ cert, key, ca }: { readonly [K in keyof CertificateTexts]: string | undefined }): readonly CertificateFault[] {
  try {
    createSecureContext({
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(ca === undefined ? {} : { ca }),
    });
    return [];
  } catch (error) {
    const of = cert === undefined ? "ca" : "cert";
    return [{ of, what: `OpenSSL does not take it: ${(error as Error).message}`, help: HELP[of] }];
  }
}
