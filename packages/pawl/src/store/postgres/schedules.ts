import type { Enqueued, NewJob } from "../../core/job.js";
import type { Hint } from "../port.js";
import type { ScheduleStore } from "../port-schedules.js";
import type { Db } from "./db.js";
import type { LowWaters } from "./low-water.js";
import { backfillSchedule, triggerSchedule } from "./schedules-by-hand.js";
import { firedTicks, listTicks, trimSchedules } from "./schedules-history.js";
import type { Made } from "./schedules-record.js";
import { findSchedule, listSchedules, pauseSchedule, putSchedules, removeSchedule, resumeSchedule } from "./schedules-table.js";
import { tickSchedules } from "./schedules-tick.js";
import { readFor } from "./wall.js";

interface Parts {
  readonly db: Db;
  readonly low: LowWaters;
  readonly hint: (hint: Hint) => void;
  /** what follows an enqueue, whoever made it */
  readonly stored: (jobs: readonly NewJob[], answers: readonly Enqueued[], now: number) => Promise<void>;
}

/** Schedules on Postgres: a wiring diagram. */
export function postgresSchedules({ db, low, hint, stored }: Parts): ScheduleStore {
  const tell = async (made: Made | undefined): Promise<void> => {
    if (made !== undefined && made.jobs.length > 0) await stored(made.jobs, made.answers, made.now);
  };
  const soon = (dueIn: number | undefined): void => {
    if (dueIn !== undefined) hint({ kind: "tick", dueIn });
  };
  return {
    async put(entries, app) {
      const { answers, missing, dueIn } = await putSchedules(db, entries, app);
      soon(dueIn);
      return { answers, missing };
    },
    get: async (ref) => (await readFor(db, ref, (on) => findSchedule(on, ref)))?.record,
    list: (scope, filter, page) => listSchedules(db, scope, filter, page),
    pause: (ref) => pauseSchedule(db, ref),
    async resume(ref) {
      const { known, dueIn } = await resumeSchedule(db, ref);
      soon(dueIn);
      return known;
    },
    remove: (ref) => removeSchedule(db, ref),
    async tick(limit, tail) {
      const { ticked, made } = await tickSchedules(db, low, limit, tail);
      await tell(made);
      return ticked;
    },
    async trigger(ref, how) {
      const made = await triggerSchedule(db, ref, how);
      await tell(made);
      return made?.answers[0];
    },
    async backfill(ref, how) {
      const made = await backfillSchedule(db, ref, how);
      await tell(made);
      return made?.answers.filter(({ kind }) => kind === "created").length;
    },
    ticks: (ref, page) => listTicks(db, ref, page),
    fired: (ref, ticks) => firedTicks(db, ref, ticks),
    trim: (limit, age) => trimSchedules(db, limit, age),
  };
}
