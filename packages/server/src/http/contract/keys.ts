import { BOUNDS, type KeyListing, type KeyView, ROLES, type ShownKey } from "pawl";
import Type from "typebox";
import type { Policy } from "./policy.js";
import { route } from "./route.js";
import { as, closed, Duration, Limit, list, optional, shown, TenantName, Time, text } from "./schemas.js";

const READ: Policy = { action: "keys.read", scope: "tenant" };
const WRITE: Policy = { action: "keys.write", scope: "tenant" };

const KeyId = Type.String({ pattern: "^[0-9A-Za-z]{1,64}$", description: "the id of a key: its third part" });
const patterns = (of: string) =>
  optional(
    Type.Array(text(128, "letters stand for themselves, * for any run of them"), {
      minItems: 1,
      maxItems: BOUNDS.patterns,
      description: `the ${of} it holds for; left out: all`,
    }),
  );
const grantFields = { role: as<(typeof ROLES)[number]>({ enum: [...ROLES] }), tasks: patterns("tasks"), queues: patterns("queues") };

const Key = shown<KeyView>({
  id: Type.String(),
  name: Type.String(),
  tenant: optional(Type.String({ description: "left out: it acts for the whole store" })),
  grants: list(Type.Object(grantFields)),
  createdAt: Time,
  expiresAt: optional(Time),
  revokedAt: optional(Time),
  lastUsedAt: optional(Time),
});
const Shown = shown<ShownKey>({ key: Key, text: Type.String({ description: "the key itself, which is shown this once" }) });
const one = { params: closed({ key: KeyId }), status: 200 } as const;

export const createKey = route({
  id: "keys.create",
  method: "POST",
  path: "/v1/keys",
  summary: "Make an API key, and show it this once",
  policy: WRITE,
  body: closed({
    name: text(128, "for people"),
    tenant: optional(TenantName),
    grants: Type.Array(closed(grantFields), { minItems: 1, maxItems: BOUNDS.grants }),
    lasts: optional(Duration),
  }),
  status: 201,
  answer: { means: "The key, with its secret in it.", body: Shown },
  example: { name: "ci", grants: [{ role: "producer", tasks: ["mail.*"] }], lasts: "90d" },
});
export const listKeys = route({
  id: "keys.list",
  method: "GET",
  path: "/v1/keys",
  summary: "Keys, newest first, without their secrets",
  policy: READ,
  query: closed({ tenant: optional(TenantName), limit: optional(Limit), after: optional(KeyId) }),
  status: 200,
  answer: { means: "A page of keys.", body: shown<KeyListing>({ keys: list(Key), next: optional(Type.String()) }) },
});
export const getKey = route({
  id: "keys.get",
  method: "GET",
  path: "/v1/keys/{key}",
  summary: "One key, without its secret",
  policy: READ,
  ...one,
  answer: { means: "The key.", body: Key },
});
export const rotateKey = route({
  id: "keys.rotate",
  method: "POST",
  path: "/v1/keys/{key}/rotate",
  summary: "Give a key a new secret, beside which the one before is good for a while",
  policy: WRITE,
  ...one,
  body: closed({ overlap: optional(Duration) }),
  bodyOptional: true,
  answer: { means: "The key, with its new secret in it.", body: Shown },
});
export const revokeKey = route({
  id: "keys.revoke",
  method: "POST",
  path: "/v1/keys/{key}/revoke",
  summary: "End a key for good, everywhere within 5 s",
  policy: WRITE,
  ...one,
  answer: { means: "The key as it is now.", body: Key },
});
