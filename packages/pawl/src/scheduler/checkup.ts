import { diagnose, type Finding } from "../core/doctor.js";
import type { Duration } from "../core/duration.js";
import type { Lane } from "../core/lane.js";
import { VERSION } from "../core/version.js";
import { wallClock } from "../runtime/clock.js";
import type { Store } from "../store/port.js";
import type { Pulse } from "../store/port-duties.js";
import { checkDuration, checkKeys, checkObject } from "./check.js";
import { unserved } from "./unserved.js";

export interface CheckupOptions {
  /** how long a transaction may be open, a lease be over, a duty be late or a handler go on after its time before it is told; 1 minute unless set */
  readonly patience?: Duration;
}

const CHECKUP_KEYS = new Set(["patience"]);
const PATIENCE = 60_000;

/** Gathers what is known of the store and of those who work on it, and judges it. */
export async function checkup(store: Store, options: CheckupOptions = {}): Promise<readonly Finding[]> {
  checkKeys(checkObject("options", options), CHECKUP_KEYS);
  const patience = checkDuration("patience", options.patience ?? PATIENCE);
  const before = wallClock();
  const pulse = await store.duties.pulse();
  // Its answer is from about the middle of the time it took.
  const ahead = (before + wallClock()) / 2 - pulse.now;
  const [found, lanes, live] = await Promise.all([store.checkup.look(), unserved(store), store.workers.live()]);
  return diagnose(
    {
      ...found,
      ahead,
      overdue: overdueOf(pulse),
      unserved: lanes.map(({ lane, why }) => ({ lane: laneInWords(lane), why })),
      workers: live.map(({ name, serves: { version } }) => ({ name, ...(version === undefined ? {} : { version }) })),
      slots: live.flatMap(({ name, serves: { slots } }) => (slots === undefined ? [] : { worker: name, use: slots })),
      version: VERSION,
    },
    patience,
  );
}

function overdueOf({ scheduledIn, timerIn, tickIn, admitIn }: Pulse): number {
  return Math.max(0, ...[scheduledIn, timerIn, tickIn, admitIn].map((dueIn) => (dueIn === undefined ? 0 : -dueIn)));
}

function laneInWords({ queue, band, tenant, task }: Lane): string {
  return `task ${task} in queue ${queue} (band ${band}, tenant ${tenant})`;
}
