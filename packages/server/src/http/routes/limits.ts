import { listLimits } from "../contract/operate/limits.js";
import { on, tenantOf } from "../handler.js";

export const limits = [
  on(listLimits, ({ query: { name, key, limit, after, afterName, afterTenant, tenant }, pawl, principal }) => {
    const owner = principal.tenant ?? tenant;
    return pawl.limits.list(
      {
        ...(owner === undefined ? {} : { tenant: owner }),
        ...(name === undefined ? {} : { limit: name }),
        ...(key === undefined ? {} : { key }),
      },
      {
        ...(limit === undefined ? {} : { limit }),
        // Half of a place is refused where places are read.
        ...(after === undefined && afterName === undefined
          ? {}
          : { after: { tenant: tenantOf(principal, afterTenant), limit: afterName as string, key: after as string } }),
      },
    );
  }),
];
