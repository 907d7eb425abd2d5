import type { Principal } from "../access/principal.js";

/** Whose share a caller uses: a tenant has one, however many keys it has; so has each credential for all tenants. */
export function shareOwner({ tenant, name }: Principal): string {
  return tenant === undefined ? JSON.stringify([null, name]) : JSON.stringify([tenant]);
}

/**
 * Everything of a shared kind is taken, and `requester` wants one. Answers the owner that has to give up one of its own for it:
 * the one that has most, if that is more than `requester` would have then. Nobody: `requester` has its fair share already.
 */
export function ownerToEvict(owners: Iterable<string>, requester: string): string | undefined {
  const counts = new Map<string, number>();
  for (const owner of owners) counts.set(owner, (counts.get(owner) ?? 0) + 1);
  let heaviest: string | undefined;
  let highest = (counts.get(requester) ?? 0) + 1;
  for (const [owner, count] of counts) {
    if (count <= highest) continue;
    heaviest = owner;
    highest = count;
  }
  return heaviest;
}
