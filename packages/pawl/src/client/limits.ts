import {
  checkLimitsFilter,
  checkLimitsPage,
  type LimitListing,
  type LimitsFilter,
  type LimitsOperator,
  type LimitsPage,
} from "../scheduler/limits-view.js";
import { limitView } from "./views.js";
import type { Wire } from "./wire.js";

/** Limits on keys as they stand, through the service. */
export class RemoteLimits implements LimitsOperator {
  constructor(private readonly wire: Wire) {}

  async list(filter: LimitsFilter = {}, page: LimitsPage = {}): Promise<LimitListing> {
    // The tenant may be that of the API key: whether one is missing is the service's to say.
    const { tenant, limit: name, key } = checkLimitsFilter(filter);
    const { limit, after } = checkLimitsPage(page);
    const query = { tenant, name, key, limit, after: after?.key, afterName: after?.limit, afterTenant: after?.tenant };
    const { limits, next } = (await this.wire.get("/v1/limits", query)) as LimitListing;
    return { limits: limits.map(limitView), ...(next === undefined ? {} : { next }) };
  }
}
