import { failure } from "../../../core/jobs/failure.js";
import type { JobId } from "../../../core/jobs/id.js";
import type { JobState, RequestedIntent } from "../../../core/jobs/job.js";
import { applies, type Verb } from "../../../core/jobs/lifecycle.js";
import { withoutTimers } from "../../../core/jobs/timer.js";
import type { Scope } from "../../port/index.js";
import type { JobChangeResult, JobStore } from "../../port/jobs/jobs.js";
import { restore } from "../prune.js";
import type { MemoryJob, Tables } from "../state.js";
import { cancelNow, enqueue } from "./enqueue.js";
import { erase, systemEntry } from "./history.js";
import { leave, move, parked, waiting } from "./move.js";
import { attemptBytes, lineBytes, partOf } from "./page-size.js";
import { historyOf, page, recordOf, visible, wholePage } from "./view.js";

export function memoryJobs(tables: Tables): JobStore {
  /** One job, one verb: refused where the lifecycle says that it does not apply. */
  const change = (verb: Verb, scope: Scope, id: JobId, act: (row: MemoryJob) => JobState | "deleted") =>
    tables.step((): JobChangeResult => {
      const row = visible(tables, scope, id);
      if (row === undefined) return { kind: "unknown" };
      const from = row.status.state;
      if (!applies(verb, from)) return { kind: "refused", state: from };
      return { kind: "changed", from, to: act(row) };
    });

  return {
    async enqueue(jobs) {
      return tables.step(() => enqueue(tables, jobs));
    },
    get: (scope, id) => tables.step(() => mapped(visible(tables, scope, id), (row) => recordOf(tables, row))),
    lanes: (scope, ids) =>
      tables.step(() => new Map(ids.flatMap((id) => mapped(visible(tables, scope, id), ({ lane }) => [[id, lane] as const]) ?? []))),
    list: (scope, filter, request) => tables.step(() => page(tables, scope, filter, request)),
    history: (scope, id, part) => tables.step(() => partOf(mapped(visible(tables, scope, id), historyOf) ?? [], part, attemptBytes)),
    logs: (scope, id, part) => tables.step(() => partOf([...(visible(tables, scope, id)?.logs ?? [])], part, lineBytes)),

    restore: (batch) => restore(tables, batch),
    whole: (scope, request) => tables.step(() => wholePage(tables, scope, request)),

    cancel: (scope, id, reason) =>
      change("cancel", scope, id, (row) => {
        if (row.status.state === "running") return requestIntent(tables, row, { intent: "cancel", reason });
        cancelNow(tables, row, reason);
        return "cancelled";
      }),

    pause: (scope, id, reason = "paused") =>
      change("pause", scope, id, (row) => {
        if (row.status.state === "running" || row.status.state === "blocked") return requestIntent(tables, row, { intent: "pause", reason });
        move(tables, row, "pause", parked(tables, runAtOf(row)));
        return "parked";
      }),

    resume: (scope, id) =>
      change("resume", scope, id, (row) => {
        if (row.status.state === "parked") {
          // It waits at a limit key, where nobody paused it.
          if (row.status.limitWait !== undefined) return "parked";
          move(tables, row, "resume", waiting(tables, runAtOf(row)));
          return row.status.state;
        }
        // A cancel is not taken back: whoever asked for it may have been told already.
        if (tables.intents.get(id)?.intent === "pause") tables.intents.delete(id);
        tables.wakeups.intent = true;
        return row.status.state;
      }),

    promote: (scope, id) =>
      change("promote", scope, id, (row) => {
        move(tables, row, "promote", { state: "ready" });
        return row.status.state;
      }),

    redrive: (scope, id, how) =>
      change("redrive", scope, id, (row) => {
        const to = waiting(tables, tables.now + (how.delay ?? 0));
        row.history.push({
          job: id,
          outcome: "redriven",
          ...systemEntry(tables),
          ...(how.input === undefined ? {} : { replacedInput: row.input }),
          ...(how.reason === undefined ? {} : { failure: failure("error", how.reason) }),
          next: to.state,
        });
        row.input = how.input ?? row.input;
        row.attempts = 0;
        row.crashes = 0;
        row.options = row.options === undefined ? undefined : withoutTimers(row.options);
        move(tables, row, "redrive", to);
        return row.status.state;
      }),

    delete: (scope, id) =>
      change("delete", scope, id, (row) => {
        leave(tables, row);
        erase(tables, row);
        return "deleted";
      }),
  };
}

/** Notes what was asked of a job that cannot be moved now. A cancel outranks a pause. */
function requestIntent(tables: Tables, row: MemoryJob, request: RequestedIntent): JobState {
  if (tables.intents.get(row.id)?.intent !== "cancel") tables.intents.set(row.id, request);
  tables.wakeups.intent = true;
  return row.status.state;
}

function runAtOf(row: MemoryJob): number | undefined {
  return "runAt" in row.status ? row.status.runAt : undefined;
}

function mapped<T, R>(value: T | undefined, map: (value: T) => R): R | undefined {
  return value === undefined ? undefined : map(value);
}
