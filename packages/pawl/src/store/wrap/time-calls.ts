import type { Bus } from "../../runtime/process/bus.js";
import type { Clock } from "../../runtime/time/clock.js";
import type { Store } from "../port/index.js";
import { wrapStore } from "./wrap-store.js";

/** A store that tells the bus of every operation, if anybody hears it. */
export function timeCalls(store: Store, bus: Bus, clock: Clock): Store {
  return wrapStore(store, (operation, call) => {
    if (!bus.hasListeners("store.operation")) return call();
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
