import { checkLimitKey, checkLimitsFilter, type LimitsFilter, type LimitsOperator, type LimitView } from "../../scheduler/limits/limits-view.js";
import { checkPageOptions, type PagedList, type PageOptions, pagedList, revivedPage } from "../../scheduler/page.js";
import type { HttpTransport } from "../transport/http-transport.js";
import { limitView } from "./parse-views.js";

/** Limits on keys as they stand, through the service. */
export class RemoteLimits implements LimitsOperator {
  constructor(private readonly transport: HttpTransport) {}

  list(filter: LimitsFilter = {}, page?: PageOptions): PagedList<LimitView> {
    return pagedList(page, async (one) => {
      // The tenant may be that of the API key: whether one is missing is the service's to say.
      const query = { ...checkLimitsFilter(filter), ...checkPageOptions(one) };
      return revivedPage(await this.transport.get("/v1/limits", query), limitView);
    });
  }

  async get(limitKey: Required<LimitsFilter>): Promise<LimitView | undefined> {
    return (await this.list(checkLimitKey(limitKey), { limit: 1 })).items[0];
  }
}
