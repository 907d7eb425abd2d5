import type { GateKey } from "../../core/limit.js";

/**
 * Gates that a transaction knocked at are looked at once it has committed, by whoever made it; the rows in `pawl.knock`
 * are for those who do not live to see that. Kept by the transaction's handle, so that nothing in between has to know.
 */
const noted = new WeakMap<object, Set<GateKey>>();

/** What is noted under the handle from here on is found in the set. */
export function listenForKnocks<T extends object>(handle: T, gates: Set<GateKey>): T {
  noted.set(handle, gates);
  return handle;
}

/** Another handle of the same transaction. */
export function sameKnocks<T extends object>(from: object, to: T): T {
  const gates = noted.get(from);
  return gates === undefined ? to : listenForKnocks(to, gates);
}

/** In a transaction that is somebody else's, nobody hears it: the pulse finds the rows. */
export function noteKnocks(handle: object, gates: Iterable<string>): void {
  const set = noted.get(handle);
  if (set !== undefined) for (const gate of gates) set.add(gate as GateKey);
}
