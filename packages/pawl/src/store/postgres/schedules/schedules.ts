import type { Enqueued, NewJob } from "../../../core/jobs/job.js";
import type { Wakeup } from "../../port/index.js";
import type { ScheduleStore } from "../../port/schedules/schedules.js";
import type { StoreDb } from "../connection/db.js";
import { readFor } from "../connection/tenant-role.js";
import type { TickedJobs } from "./record-ticks.js";
import { findSchedule, listSchedules, pauseSchedule, putSchedules, removeSchedule, resumeSchedule } from "./schedule-table.js";
import { firedTicks, listTicks } from "./tick-history.js";
import { backfillSchedule, triggerSchedule } from "./trigger-and-backfill.js";

interface ScheduleDeps {
  readonly db: StoreDb;
  readonly wakeup: (wakeup: Wakeup) => void;
  /** what follows an enqueue, whoever made it */
  readonly stored: (jobs: readonly NewJob[], answers: readonly Enqueued[], now: number) => Promise<void>;
}

/** Schedules on Postgres: a wiring diagram. */
export function postgresSchedules({ db, wakeup, stored }: ScheduleDeps): ScheduleStore {
  const afterEnqueue = async (made: TickedJobs | undefined): Promise<void> => {
    if (made !== undefined && made.jobs.length > 0) await stored(made.jobs, made.answers, made.now);
  };
  const wakeAt = (dueIn: number | undefined): void => {
    if (dueIn !== undefined) wakeup({ kind: "tick", dueIn });
  };
  return {
    async put(entries, app) {
      const { answers, missing, dueIn } = await putSchedules(db, entries, app);
      wakeAt(dueIn);
      return { answers, missing };
    },
    get: async (ref) => (await readFor(db, ref, (on) => findSchedule(on, ref)))?.record,
    list: (scope, filter, page) => listSchedules(db, scope, filter, page),
    pause: (ref) => pauseSchedule(db, ref),
    async resume(ref) {
      const { known, dueIn } = await resumeSchedule(db, ref);
      wakeAt(dueIn);
      return known;
    },
    delete: (ref) => removeSchedule(db, ref),
    async trigger(ref, how) {
      const made = await triggerSchedule(db, ref, how);
      await afterEnqueue(made);
      return made?.answers[0];
    },
    async backfill(ref, how) {
      const made = await backfillSchedule(db, ref, how);
      await afterEnqueue(made);
      return made?.answers.filter(({ kind }) => kind === "created").length;
    },
    ticks: (ref, page) => listTicks(db, ref, page),
    fired: (ref, ticks) => firedTicks(db, ref, ticks),
  };
}
