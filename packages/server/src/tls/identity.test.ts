import { describe, expect, test } from "vitest";
import type { Access, Principal } from "../http/access.js";
import { boundToCertificates, identityOf } from "./identity.js";
import { namesIn } from "./names.js";

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
    expect(identityOf(namesIn(names))).toEqual(identity);
  });

  test("cannot hide a second name in the first", () => {
    const hostile = 'DNS:"evil.example, URI:spiffe://a/tenant/acme/worker/x", DNS:plain.example';
    expect(namesIn(hostile)).toEqual(['DNS:"evil.example, URI:spiffe://a/tenant/acme/worker/x"', "DNS:plain.example"]);
    expect(identityOf(namesIn(hostile))).toBeUndefined();
  });
});

describe("access bound to certificates", () => {
  const ofAcme: Principal = { name: "key", tenant: "acme", grants: [{ role: "producer" }] };
  const keys: Access = {
    authenticate: async ({ authorization }) => (authorization === "Bearer acme" ? ofAcme : { refused: "unauthenticated" }),
  };
  const ask = (certificate: readonly string[], authorization?: string) =>
    boundToCertificates(keys).authenticate({ authorization, address: "::1", certificate });
  const ACME = ["URI:spiffe://a/tenant/acme/worker/box-7"];

  test("S8: refuses a key of another tenant than the certificate's", async () => {
    expect(await ask(["URI:spiffe://a/tenant/globex"], "Bearer acme")).toEqual({ refused: "mismatch" });
    expect(await ask(["URI:spiffe://a/tenant/acme", "URI:spiffe://a/tenant/globex"], "Bearer acme")).toEqual({ refused: "mismatch" });
  });

  test("lets the tenant's own keys through, with their rights", async () => {
    expect(await ask(ACME, "Bearer acme")).toBe(ofAcme);
  });

  test("takes a certificate without a key for that tenant's worker, and nothing more", async () => {
    expect(await ask(ACME)).toEqual({ name: "certificate of acme/box-7", tenant: "acme", grants: [{ role: "worker" }] });
  });

  test("asks for a key where the certificate names nobody, and for a good one always", async () => {
    expect(await ask(["DNS:box"])).toEqual({ refused: "unauthenticated" });
    expect(await ask(ACME, "Bearer wrong")).toEqual({ refused: "unauthenticated" });
  });
});
