import { type AnchoredHead, serviceOf } from "pawl/service";
import { listAudit, verifyAudit } from "../contract/access/audit.js";
import type { BodyOf } from "../contract/route.js";
import { on } from "../handler.js";

export const audit = [
  on(listAudit, ({ pawl, principal, query: { tenant, limit, before, ...filter } }) =>
    serviceOf(pawl).audit.list(
      { ...filter, tenant: principal.tenant ?? tenant },
      { ...(limit === undefined ? {} : { limit }), ...(before === undefined ? {} : { before }) },
    ),
  ),
  on(verifyAudit, ({ pawl, body }) => serviceOf(pawl).audit.verify({ anchors: anchoredHeadsOf(body?.anchors ?? []) })),
];

type AnchorBody = NonNullable<NonNullable<BodyOf<typeof verifyAudit>>["anchors"]>;

/** The chain of the store as a whole has no tenant, and says so. */
function anchoredHeadsOf(anchors: AnchorBody): readonly AnchoredHead[] {
  return anchors.map(({ tenant, seq, hash }) => ({ tenant, seq, hash }));
}
