import type { Access, Principal } from "../http/access/principal.js";

/** Whose a client's certificate is. */
export interface CertificateIdentity {
  readonly tenant: string;
  readonly worker?: string;
}

/**
 * Read from the certificate's alternative names: `URI:spiffe://any.domain/tenant/acme/worker/box-7` (or `pawl:` in place of
 * `spiffe:`). Without such a name a certificate opens the connection and says nothing more. Two that differ are none at all.
 */
export function identityOf(names: readonly string[]): CertificateIdentity | "unclear" | undefined {
  const identities = names.flatMap((name) => {
    const [, tenant, worker] = /^(?:URI:)?(?:spiffe|pawl):\/\/[^/]*\/tenant\/([^/]+)(?:\/worker\/([^/]+))?$/.exec(name) ?? [];
    return tenant === undefined ? [] : [{ tenant: decode(tenant), ...(worker === undefined ? {} : { worker: decode(worker) }) }];
  });
  const [first, ...rest] = identities;
  return rest.some(({ tenant, worker }) => tenant !== first?.tenant || worker !== first.worker) ? "unclear" : first;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * Binds callers to their certificates: one that names a tenant is good for that tenant alone, whatever key comes with it;
 * without a key, it is that tenant's worker.
 */
export function withClientCertificates(access: Access): Access {
  return {
    async authenticate(credential) {
      const identity = identityOf(credential.certificate);
      if (identity === "unclear") return { refused: "mismatch" };
      if (identity === undefined) return access.authenticate(credential);
      if (credential.authorization === undefined) return workerPrincipal(identity);
      const principal = await access.authenticate(credential);
      if ("refused" in principal) return principal;
      return principal.tenant === identity.tenant ? principal : { refused: "mismatch" };
    },
  };
}

function workerPrincipal({ tenant, worker }: CertificateIdentity): Principal {
  return { name: `certificate of ${worker === undefined ? tenant : `${tenant}/${worker}`}`, tenant, grants: [{ role: "worker" }] };
}
