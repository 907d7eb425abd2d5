import { type ApiKeyView, type ApiKeyWithSecret, BOUNDS, ROLES } from "pawl/service";
import Type from "typebox";
import type { Policy } from "../policy.js";
import { route } from "../route.js";
import { as, closedObject, Duration, list, openObject, optional, PAGE, pageOf, TenantName, Time, text } from "../schemas.js";

const READ: Policy = { action: "apiKeys.read", scope: "tenant" };
const WRITE: Policy = { action: "apiKeys.write", scope: "tenant" };

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

const KeySchema = openObject<ApiKeyView>({
  id: Type.String(),
  name: Type.String(),
  tenant: optional(Type.String({ description: "left out: it acts for the whole store" })),
  grants: list(Type.Object(grantFields)),
  createdAt: Time,
  expiresAt: optional(Time),
  revokedAt: optional(Time),
  lastUsedAt: optional(Time),
});
const ShownKeySchema = openObject<ApiKeyWithSecret>({
  key: KeySchema,
  secret: Type.String({ description: "the key itself, which is shown this once" }),
});
const oneKey = { params: closedObject({ key: KeyId }), status: 200 } as const;

export const createKey = route({
  id: "apiKeys.create",
  method: "POST",
  path: "/v1/api-keys",
  summary: "Make an API key, and show it this once",
  policy: WRITE,
  body: closedObject({
    name: text(128, "for people"),
    tenant: optional(TenantName),
    grants: Type.Array(closedObject(grantFields), { minItems: 1, maxItems: BOUNDS.grants }),
    expiresIn: optional(Duration),
  }),
  status: 201,
  answer: { means: "The key, with its secret in it.", body: ShownKeySchema },
  example: { name: "ci", grants: [{ role: "producer", tasks: ["mail.*"] }], expiresIn: "90d" },
});
export const listKeys = route({
  id: "apiKeys.list",
  method: "GET",
  path: "/v1/api-keys",
  summary: "Keys, newest first, without their secrets",
  policy: READ,
  query: closedObject({ tenant: optional(TenantName), ...PAGE }),
  status: 200,
  answer: { means: "A page of keys.", body: pageOf<ApiKeyView>(KeySchema) },
});
export const getKey = route({
  id: "apiKeys.get",
  method: "GET",
  path: "/v1/api-keys/{key}",
  summary: "One key, without its secret",
  policy: READ,
  ...oneKey,
  answer: { means: "The key.", body: KeySchema },
});
export const rotateKey = route({
  id: "apiKeys.rotate",
  method: "POST",
  path: "/v1/api-keys/{key}/rotate",
  summary: "Give a key a new secret, beside which the one before is good for a while",
  policy: WRITE,
  ...oneKey,
  body: closedObject({ keepOldFor: optional(Duration) }),
  bodyOptional: true,
  answer: { means: "The key, with its new secret in it.", body: ShownKeySchema },
});
export const revokeKey = route({
  id: "apiKeys.revoke",
  method: "POST",
  path: "/v1/api-keys/{key}/revoke",
  summary: "End a key for good, everywhere within 5 s",
  policy: WRITE,
  ...oneKey,
  answer: { means: "The key as it is now.", body: KeySchema },
});
