import type { Bus } from "../runtime/bus.js";
import type { Clock } from "../runtime/clock.js";
import { aroundStore } from "./around.js";
import type { Store } from "./port.js";

/** A store that tells the bus of every operation, if anybody hears it. */
export function observed(store: Store, bus: Bus, clock: Clock): Store {
  return aroundStore(store, (operation, call) => {
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
}
