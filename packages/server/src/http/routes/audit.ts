import { listAudit } from "../contract/audit.js";
import { on } from "../handler.js";

export const audit = [
  on(listAudit, ({ pawl, principal, query: { tenant, limit, before, ...filter } }) =>
    pawl.audit.list(
      { ...filter, tenant: principal.tenant ?? tenant },
      { ...(limit === undefined ? {} : { limit }), ...(before === undefined ? {} : { before }) },
    ),
  ),
];
