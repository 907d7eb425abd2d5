import type { Duration, Grant, Keys, Pawl } from "pawl";
import type { Principal } from "../access.js";
import { createKey, getKey, listKeys, revokeKey, rotateKey } from "../contract/keys.js";
import { on } from "../handler.js";

/** The keys a caller may see and make: those of its tenant, or all. */
function keysOf({ pawl, principal }: { readonly pawl: Pawl; readonly principal: Principal }, asked?: string): Keys {
  const tenant = principal.tenant ?? asked;
  return tenant === undefined ? pawl.keys : pawl.keys.as({ tenant });
}

export const keys = [
  on(createKey, (call) => {
    const { name, tenant, grants, lasts } = call.body;
    return keysOf(call, tenant).create({ name, grants: grants as readonly Grant[], ...(lasts === undefined ? {} : { lasts: lasts as Duration }) });
  }),
  on(listKeys, (call) => {
    const { tenant, limit, after } = call.query;
    return keysOf(call, tenant).list({ ...(limit === undefined ? {} : { limit }), ...(after === undefined ? {} : { after }) });
  }),
  on(getKey, (call) => keysOf(call).get(call.params.key)),
  on(rotateKey, (call) => {
    const overlap = call.body?.overlap;
    return keysOf(call).rotate(call.params.key, overlap === undefined ? {} : { overlap: overlap as Duration });
  }),
  on(revokeKey, (call) => keysOf(call).revoke(call.params.key)),
];
