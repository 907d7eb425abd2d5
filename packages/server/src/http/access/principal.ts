import type { Identity } from "pawl/service";

/** Who calls, as a credential told. */
export interface Principal extends Identity {
  /** what audits and logs call it: the id of a key, the name in a certificate */
  readonly name: string;
  /** it showed nothing that tells it from others: they have the name in common */
  readonly anonymous?: true;
}

/** What a request shows of its caller. */
export interface Credential {
  /** of the header `Authorization` */
  readonly authorization: string | undefined;
  /** where it comes from: the other end of the connection, or what a trusted proxy saw */
  readonly address: string;
  /** the names in the certificate it showed, where the service asks for one */
  readonly certificate: readonly string[];
  /** why it may have been sent by a page from elsewhere, for those who ask for nothing else: see cross-origin.ts */
  readonly crossOrigin?: string | undefined;
  /** what is asked for is answered while the store is away, too: what that last told of the caller is enough then */
  readonly inOutage?: true | undefined;
}

/**
 * `limited`: too many wrong ones from this address; ms until it is worth trying again. `mismatch`: the certificate of the
 * connection names another tenant than the credential. `cross_origin`: nobody needs a credential, and this may not be one of them.
 */
export type Refusal =
  | { readonly refused: "unauthenticated" }
  | { readonly refused: "mismatch" }
  | { readonly refused: "cross_origin"; readonly reason: string }
  | { readonly refused: "limited"; readonly retryAfter: number };

/** Tells who calls. Asked once per request, and again every few seconds by what lasts longer. */
export interface Access {
  authenticate(credential: Credential): Promise<Principal | Refusal>;
}

/** Without authentication the service listens on loopback only, and every program that reaches it may do everything. */
export const OPEN_ACCESS: Access = {
  authenticate: async ({ crossOrigin }) =>
    crossOrigin === undefined
      ? { name: "loopback", tenant: undefined, grants: [{ role: "admin" }], anonymous: true }
      : { refused: "cross_origin", reason: crossOrigin },
};
