import {
  checkLimitsFilter,
  checkLimitsPage,
  type LimitListing,
  type LimitsFilter,
  type LimitsOperator,
  type LimitsPageOptions,
} from "../../scheduler/limits/limits-view.js";
import type { HttpTransport } from "../transport/http-transport.js";
import { limitView } from "./parse-views.js";

/** Limits on keys as they stand, through the service. */
export class RemoteLimits implements LimitsOperator {
  constructor(private readonly transport: HttpTransport) {}

  async list(filter: LimitsFilter = {}, page: LimitsPageOptions = {}): Promise<LimitListing> {
    // The tenant may be that of the API key: whether one is missing is the service's to say.
    const { tenant, limit: name, key } = checkLimitsFilter(filter);
    const { limit, after } = checkLimitsPage(page);
    const query = { tenant, name, key, limit, after: after?.key, afterName: after?.limit, afterTenant: after?.tenant };
    const { limits, next } = (await this.transport.get("/v1/limits", query)) as LimitListing;
    return { limits: limits.map(limitView), ...(next === undefined ? {} : { next }) };
  }
}
