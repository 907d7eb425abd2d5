import type { Action } from "pawl/service";

/**
 * Who may call a route. With an action: whoever has a role for it (the library's table of access), each for the tenant
 * of their credential; `scope: "everyone"` takes a credential of all tenants, since what it shows is shared by them.
 * `allTenantsOnly` is what is not kept by tenant, and so cannot be told to one. `open` is for everybody, and says why.
 */
export type Policy =
  | { readonly action: Action; readonly scope: "tenant" }
  | { readonly action: Action; readonly scope: "everyone"; readonly allTenantsOnly?: string }
  | { readonly open: string };
