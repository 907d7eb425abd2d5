import type { Store } from "../store/port/index.js";
import { type Operation, wrapStore } from "../store/wrap/wrap-store.js";

/**
 * What goes wrong with one call of the store:
 * - `fail`: it does nothing and rejects, as if it was never sent;
 * - `lose`: it is carried out, and its answer is lost on the way back;
 * - `hold`: it waits for `until` before it is sent;
 * - `delay`: it is carried out at once, and its answer waits for `until`.
 */
export type Fault =
  | { readonly kind: "fail" | "lose"; readonly error?: unknown }
  | { readonly kind: "hold" | "delay"; readonly until: Promise<unknown> };

/** Asked before every call, with how many calls of that operation there were before it. */
export type FaultPlan = (operation: Operation, earlier: number) => Fault | undefined;

export function faultyStore(store: Store, plan: FaultPlan): Store {
  const calls = new Map<Operation, number>();
  return wrapStore(store, async (operation, call) => {
    const earlier = calls.get(operation) ?? 0;
    calls.set(operation, earlier + 1);
    const fault = plan(operation, earlier);
    switch (fault?.kind) {
      case undefined:
        return call();
      case "fail":
        throw fault.error ?? new Error(`${operation} was made to fail`);
      case "lose":
        await call();
        throw fault.error ?? new Error(`the answer of ${operation} was lost on purpose`);
      case "hold":
        await fault.until;
        return call();
      case "delay": {
        const answer = await call();
        await fault.until;
        return answer;
      }
    }
  });
}
