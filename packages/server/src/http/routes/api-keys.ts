import type { Duration, Pawl } from "pawl";
import { type ApiKeys, type Grant, serviceOf } from "pawl/service";
import type { Principal } from "../access/principal.js";
import { createKey, getKey, listKeys, revokeKey, rotateKey } from "../contract/access/api-keys.js";
import { filterAndPage, on } from "../handler.js";

/** The keys a caller may see and make: those of its tenant, or all. */
function keysOf({ pawl, principal }: { readonly pawl: Pawl; readonly principal: Principal }, requested?: string): ApiKeys {
  const tenant = principal.tenant ?? requested;
  return tenant === undefined ? serviceOf(pawl).apiKeys : serviceOf(pawl).apiKeys.forTenant(tenant);
}

export const keys = [
  on(createKey, (call) => {
    const { name, tenant, grants, expiresIn } = call.body;
    return keysOf(call, tenant).create({
      name,
      grants: grants as readonly Grant[],
      ...(expiresIn === undefined ? {} : { expiresIn: expiresIn as Duration }),
    });
  }),
  on(listKeys, (call) => {
    const [{ tenant }, page] = filterAndPage(call.query);
    return keysOf(call, tenant).list({}, page);
  }),
  on(getKey, (call) => keysOf(call).get(call.params.key)),
  on(rotateKey, (call) => {
    const keepOldFor = call.body?.keepOldFor;
    return keysOf(call).rotate(call.params.key, keepOldFor === undefined ? {} : { keepOldFor: keepOldFor as Duration });
  }),
  on(revokeKey, (call) => keysOf(call).revoke(call.params.key)),
];
