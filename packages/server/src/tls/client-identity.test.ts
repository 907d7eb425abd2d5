import { describe, expect, test } from "vitest";
import type { Access, Principal } from "../http/access/principal.js";
import { certificateNames } from "./certificate-names.js";
import { identityOf, withClientCertificates } from "./client-identity.js";

describe("a client's certificate", () => {
  test.each([
    ["URI:spiffe://example.org/tenant/acme", { tenant: "acme" }],
    ["DNS:box-7.example, URI:pawl://x/tenant/acme/worker/box-7", { tenant: "acme", worker: "box-7" }],
    ["URI:spiffe://example.org/tenant/a%20b", { tenant: "a b" }],
    ["DNS:box-7.example", undefined],
    ["", undefined],
    ["URI:https://example.org/tenant/acme", undefined],
    ["URI:spiffe://example.org/tenant/acme/other/x", undefined],
    ["URI:spiffe://a/tenant/acme, URI:spiffe://a/tenant/acme", { tenant: "acme" }],
    ["URI:spiffe://a/tenant/acme, URI:spiffe://a/tenant/globex", "unclear"],
  ])("with the names %j is of %o", (names, identity) => {
    expect(identityOf(certificateNames(names))).toEqual(identity);
  });

  test("cannot hide a second name in the first", () => {
    const hostile = 'DNS:"evil.example, URI:spiffe://a/tenant/acme/worker/x", DNS:plain.example';
    expect(certificateNames(hostile)).toEqual(['DNS:"evil.example, URI:spiffe://a/tenant/acme/worker/x"', "DNS:plain.example"]);
    expect(identityOf(certificateNames(hostile))).toBeUndefined();
  });
});

describe("access bound to certificates", () => {
  const ofAcme: Principal = { name: "key", tenant: "acme", grants: [{ role: "producer" }] };
  const keys: Access = {
    authenticate: async ({ authorization }) => (authorization === "Bearer acme" ? ofAcme : { refused: "unauthenticated" }),
  };
  const authenticate = (certificate: readonly string[], authorization?: string) =>
    withClientCertificates(keys).authenticate({ authorization, address: "::1", certificate });
  const ACME = ["URI:spiffe://a/tenant/acme/worker/box-7"];

  test("S8: refuses a key of another tenant than the certificate's", async () => {
    expect(await authenticate(["URI:spiffe://a/tenant/globex"], "Bearer acme")).toEqual({ refused: "mismatch" });
    expect(await authenticate(["URI:spiffe://a/tenant/acme", "URI:spiffe://a/tenant/globex"], "Bearer acme")).toEqual({ refused: "mismatch" });
  });

  test("lets the tenant's own keys through, with their rights", async () => {
    expect(await authenticate(ACME, "Bearer acme")).toBe(ofAcme);
  });

  test("takes a certificate without a key for that tenant's worker, and nothing more", async () => {
    expect(await authenticate(ACME)).toEqual({ name: "certificate of acme/box-7", tenant: "acme", grants: [{ role: "worker" }] });
  });

  test("asks for a key where the certificate names nobody, and for a good one always", async () => {
    expect(await authenticate(["DNS:box"])).toEqual({ refused: "unauthenticated" });
    expect(await authenticate(ACME, "Bearer wrong")).toEqual({ refused: "unauthenticated" });
  });
});
