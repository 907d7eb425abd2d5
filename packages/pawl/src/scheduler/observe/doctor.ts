import type { Lane } from "../../core/jobs/lane.js";
import { diagnose, type Finding } from "../../core/observe/doctor.js";
import type { Duration } from "../../core/values/duration.js";
import { VERSION } from "../../core/values/version.js";
import { wallClock } from "../../runtime/time/clock.js";
import { type Poll, REAP } from "../../store/port/duties/duties.js";
import type { Store } from "../../store/port/index.js";
import { checkDuration, checkKeys, checkObject } from "../check.js";
import { liveLanes } from "./lanes-and-workers.js";

export interface DoctorOptions {
  /** how long a transaction may be open, a lease be over, a duty be late or a handler go on after its time before it is told; 1 minute unless set */
  readonly overdueAfter?: Duration;
}

const DOCTOR_KEYS = new Set(["overdueAfter"]);
const OVERDUE_AFTER_MS = 60_000;

/** Gathers what is known of the store and of those who work on it, and judges it. */
export async function runDoctor(store: Store, options: DoctorOptions = {}): Promise<readonly Finding[]> {
  checkKeys(checkObject("options", options), DOCTOR_KEYS);
  const patience = checkDuration("overdueAfter", options.overdueAfter ?? OVERDUE_AFTER_MS);
  const before = wallClock();
  const poll = await store.duties.poll();
  // Its answer is from about the middle of the time it took.
  const ahead = (before + wallClock()) / 2 - poll.now;
  const [found, lanes, live] = await Promise.all([store.checkup.look(), liveLanes(store, { unserved: true }), store.workers.live()]);
  return diagnose(
    {
      ...found,
      ahead,
      overdue: overdueOf(poll),
      unserved: lanes.map(({ lane, why = "" }) => ({ lane: laneInWords(lane), why })),
      workers: live.map(({ name, serves: { version } }) => ({ name, ...(version === undefined ? {} : { version }) })),
      slots: live.flatMap(({ name, serves: { slots } }) => (slots === undefined ? [] : { worker: name, use: slots })),
      version: VERSION,
    },
    patience,
  );
}

/** An expired lease may have to wait for its holder, so it is not late. */
function overdueOf({ due }: Poll): number {
  return Math.max(0, ...[...due].map(([duty, dueIn]) => (duty === REAP ? 0 : -dueIn)));
}

function laneInWords({ queue, priority, tenant, task }: Lane): string {
  return `task ${task} in queue ${queue} (priority ${priority}, tenant ${tenant})`;
}
