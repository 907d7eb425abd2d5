import { type AnchoredHead, serviceOf } from "pawl/service";
import { listAudit, verifyAudit } from "../contract/access/audit.js";
import type { BodyOf } from "../contract/route.js";
import { filterAndPage, on } from "../handler.js";

export const audit = [
  on(listAudit, ({ pawl, principal, query }) => {
    const [{ tenant, ...filter }, page] = filterAndPage(query);
    return serviceOf(pawl).audit.list({ ...filter, tenant: principal.tenant ?? tenant }, page);
  }),
  on(verifyAudit, ({ pawl, body }) => serviceOf(pawl).audit.verify({ anchors: anchoredHeadsOf(body?.anchors ?? []) })),
];

type AnchorBody = NonNullable<NonNullable<BodyOf<typeof verifyAudit>>["anchors"]>;

/** The chain of the store as a whole has no tenant, and says so. */
function anchoredHeadsOf(anchors: AnchorBody): readonly AnchoredHead[] {
  return anchors.map(({ tenant, seq, hash }) => ({ tenant, seq, hash }));
}
