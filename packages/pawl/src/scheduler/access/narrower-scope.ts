import { checkName } from "../../core/values/name.js";
import type { Scope } from "../../store/port/index.js";
import { invalid, show } from "../check.js";

/** The scope of one tenant. A scheduler of another tenant cannot become that one. */
export function narrowerScope(scope: Scope, tenant: unknown): { readonly tenant: string } {
  const name = checkName("tenant", tenant);
  if (scope !== "everyone" && scope.tenant !== name) throw invalid("tenant", `this scheduler acts for ${show(scope.tenant)} only`);
  return { tenant: name };
}
