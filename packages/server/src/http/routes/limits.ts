import { listLimits } from "../contract/operate/limits.js";
import { filterAndPage, on } from "../handler.js";

export const limits = [
  on(listLimits, ({ query, pawl, principal }) => {
    const [filter, page] = filterAndPage(query);
    return pawl.limits.list({ ...filter, ...(principal.tenant === undefined ? {} : { tenant: principal.tenant }) }, page);
  }),
];
