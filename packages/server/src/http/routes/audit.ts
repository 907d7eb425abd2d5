import type { AuditMark } from "pawl";
import { listAudit, verifyAudit } from "../contract/audit.js";
import type { BodyOf } from "../contract/route.js";
import { on } from "../handler.js";

export const audit = [
  on(listAudit, ({ pawl, principal, query: { tenant, limit, before, ...filter } }) =>
    pawl.audit.list(
      { ...filter, tenant: principal.tenant ?? tenant },
      { ...(limit === undefined ? {} : { limit }), ...(before === undefined ? {} : { before }) },
    ),
  ),
  on(verifyAudit, ({ pawl, body }) => pawl.audit.verify({ anchors: marksOf(body?.anchors ?? []) })),
];

type Marks = NonNullable<NonNullable<BodyOf<typeof verifyAudit>>["anchors"]>;

/** The chain of the store as a whole has no tenant, and says so. */
function marksOf(anchors: Marks): readonly AuditMark[] {
  return anchors.map(({ tenant, seq, hash }) => ({ tenant, seq, hash }));
}
