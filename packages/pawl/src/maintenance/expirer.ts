import type { Store } from "../store/port.js";
import { type Duty, ran } from "./duty.js";

/** pending → dead for jobs that waited past their expiry or deadline. */
export function expirer(store: Store, batch: number): Duty {
  return {
    name: "expire",
    due: ({ timerIn }) => timerIn,
    run: async () => ran(await store.duties.expire(batch), batch),
  };
}
