import type { Bus } from "../runtime/bus.js";
import type { Clock } from "../runtime/clock.js";
import { aroundStore } from "./around.js";
import type { Hint, Store } from "./port.js";

export interface ObservedStore extends Store {
  /** Gives the listeners of this process a hint of its own. */
  hint(hint: Hint): void;
}

/** A store that tells the bus of every operation, if anybody hears it. */
export function observed(store: Store, bus: Bus, clock: Clock): ObservedStore {
  const listeners = new Set<(hint: Hint) => void>();
  const told = aroundStore(store, (operation, call) => {
    if (!bus.hears("store.operation")) return call();
    const start = clock.monotonic();
    return call().then(
      (answer) => {
        bus.emit("store.operation", { operation, duration: clock.monotonic() - start });
        return answer;
      },
      (error) => {
        bus.emit("store.operation", { operation, duration: clock.monotonic() - start, error });
        throw error;
      },
    );
  });
  return Object.assign(told, {
    onHint(listener: (hint: Hint) => void) {
      const stop = store.onHint(listener);
      listeners.add(listener);
      return () => {
        stop();
        listeners.delete(listener);
      };
    },
    hint(hint: Hint) {
      for (const listener of listeners) listener(hint);
    },
  });
}
