import { pawlError } from "../../core/error.js";
import type { JobId } from "../../core/id.js";
import type { Asked, State } from "../../core/job.js";
import { applies, type Verb } from "../../core/lifecycle.js";
import { withoutTimers } from "../../core/timer.js";
import type { Scope } from "../port.js";
import type { Change, JobStore } from "../port-jobs.js";
import { erase, mark } from "./endings.js";
import { cancelNow, enqueue } from "./enqueue.js";
import { leave, move, parked, waiting } from "./places.js";
import { attemptBytes, lineBytes, partOf } from "./sizes.js";
import type { JobRow, Tables } from "./state.js";
import { historyOf, page, recordOf, visible, wholePage } from "./view.js";

export function memoryJobs(tables: Tables): JobStore {
  /** One job, one verb: refused where the lifecycle says that it does not apply. */
  const change = (verb: Verb, scope: Scope, id: JobId, act: (row: JobRow) => State | "gone") =>
    tables.step((): Change => {
      const row = visible(tables, scope, id);
      if (row === undefined) return { kind: "unknown" };
      const from = row.place.state;
      if (!applies(verb, from)) return { kind: "refused", state: from };
      return { kind: "changed", from, to: act(row) };
    });

  return {
    async enqueue(jobs, tx) {
      if (tx !== undefined) throw pawlError("transaction_unsupported", { engine: "memory" });
      return tables.step(() => enqueue(tables, jobs));
    },
    get: (scope, id) => tables.step(() => mapped(visible(tables, scope, id), (row) => recordOf(tables, row))),
    lanes: (scope, ids) =>
      tables.step(() => new Map(ids.flatMap((id) => mapped(visible(tables, scope, id), ({ lane }) => [[id, lane] as const]) ?? []))),
    list: (scope, filter, request) => tables.step(() => page(tables, scope, filter, request)),
    history: (scope, id, part) => tables.step(() => partOf(mapped(visible(tables, scope, id), historyOf) ?? [], part, attemptBytes)),
    logs: (scope, id, part) => tables.step(() => partOf([...(visible(tables, scope, id)?.logs ?? [])], part, lineBytes)),

    whole: (scope, request) => tables.step(() => wholePage(tables, scope, request)),

    cancel: (scope, id, reason) =>
      change("cancel", scope, id, (row) => {
        if (row.place.state === "running") return ask(tables, row, { intent: "cancel", reason });
        cancelNow(tables, row, reason);
        return "cancelled";
      }),

    pause: (scope, id) =>
      change("pause", scope, id, (row) => {
        if (row.place.state === "running" || row.place.state === "blocked") return ask(tables, row, { intent: "pause", reason: "paused" });
        move(tables, row, "pause", parked(tables, runAtOf(row)));
        return "parked";
      }),

    resume: (scope, id) =>
      change("resume", scope, id, (row) => {
        if (row.place.state === "parked") {
          // It waits at a gate, where nobody paused it.
          if (row.place.standing !== undefined) return "parked";
          move(tables, row, "resume", waiting(tables, runAtOf(row)));
          return row.place.state;
        }
        // A cancel is not taken back: whoever asked for it may have been told already.
        if (tables.intents.get(id)?.intent === "pause") tables.intents.delete(id);
        tables.hints.intent = true;
        return row.place.state;
      }),

    retry: (scope, id) =>
      change("retry", scope, id, (row) => {
        move(tables, row, "retry", { state: "ready" });
        return row.place.state;
      }),

    redrive: (scope, id, how) =>
      change("redrive", scope, id, (row) => {
        const to = waiting(tables, tables.now + (how.delay ?? 0));
        row.history.push({
          job: id,
          outcome: "redriven",
          ...mark(tables),
          ...(how.input === undefined ? {} : { replacedInput: row.input }),
          next: to.state,
        });
        row.input = how.input ?? row.input;
        row.spent = 0;
        row.crashes = 0;
        row.options = row.options === undefined ? undefined : withoutTimers(row.options);
        move(tables, row, "redrive", to);
        return row.place.state;
      }),

    drop: (scope, id) =>
      change("drop", scope, id, (row) => {
        leave(tables, row);
        erase(tables, row);
        return "gone";
      }),
  };
}

/** Notes what was asked of a job that cannot be moved now. A cancel outranks a pause. */
function ask(tables: Tables, row: JobRow, asked: Asked): State {
  if (tables.intents.get(row.id)?.intent !== "cancel") tables.intents.set(row.id, asked);
  tables.hints.intent = true;
  return row.place.state;
}

function runAtOf(row: JobRow): number | undefined {
  return "runAt" in row.place ? row.place.runAt : undefined;
}

function mapped<T, R>(value: T | undefined, map: (value: T) => R): R | undefined {
  return value === undefined ? undefined : map(value);
}
