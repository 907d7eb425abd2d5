import { laneKey, type StateCounts } from "pawl/service";
import { duration, fromNow } from "../../text/amounts.js";
import { slotsText } from "../../text/worker-slots.js";
import type { TextStyle } from "../demo-screen.js";
import type { TopData } from "./data.js";

export const VIEWS = ["queues", "lanes", "workers", "jobs"] as const;
export type TopView = (typeof VIEWS)[number];

/** A row that can be chosen. */
export interface TopRow {
  readonly key: string;
  readonly cells: readonly (string | number)[];
  readonly style?: TextStyle;
}

export interface TopSheet {
  readonly headings: readonly string[];
  readonly rows: readonly TopRow[];
}

/** The rows of a view, in the order of one of its columns, those that hold the filter's text only. */
export function sheetOf(view: TopView, data: TopData, { sort, filter }: { readonly sort: number; readonly filter: string }): TopSheet {
  const { headings, rows } = SHEETS[view](data);
  const filterText = filter.toLowerCase();
  const matching = filterText === "" ? rows : rows.filter(({ cells }) => cells.some((cell) => String(cell).toLowerCase().includes(filterText)));
  return { headings, rows: [...matching].sort((a, b) => compare(a.cells[sort % headings.length], b.cells[sort % headings.length])) };
}

/** Numbers from the largest down, texts from A on. */
function compare(a: string | number | undefined, b: string | number | undefined): number {
  if (typeof a === "number" && typeof b === "number") return b - a;
  return String(a ?? "") < String(b ?? "") ? -1 : String(a ?? "") > String(b ?? "") ? 1 : 0;
}

const STATES = ["ready", "running", "scheduled", "parked", "dead"] as const satisfies readonly (keyof StateCounts)[];

const SHEETS: Readonly<Record<TopView, (data: TopData) => TopSheet>> = {
  queues: ({ queues, rates }) => ({
    headings: ["queue", ...STATES, "done/s", "dead/s"],
    rows: queues.map(({ queue, paused, counts }) => {
      const { done = 0, dead = 0 } = rates.get(queue) ?? {};
      return {
        key: queue,
        cells: [paused ? `${queue} (paused)` : queue, ...STATES.map((state) => counts[state]), rounded(done), rounded(dead)],
        ...(paused ? { style: "yellow" } : dead > 0 ? { style: "red" } : {}),
      };
    }),
  }),
  lanes: ({ lanes }) => ({
    headings: ["queue", "priority", "tenant", "task", "workers", "why not"],
    rows: lanes.map(({ lane, workers, why }) => ({
      key: laneKey(lane),
      cells: [lane.queue, lane.priority, lane.tenant, lane.task, workers, why ?? ""],
      ...(workers === 0 ? { style: "red" } : {}),
    })),
  }),
  workers: ({ workers, now }) => ({
    headings: ["worker", "up", "slots in use", "oldest", "version", "queues", "tasks"],
    rows: workers.map((worker) => {
      const { name, instance, since, oldest, slots, version, queues, tasks } = worker;
      const ago = (date: Date) => duration(now.getTime() - date.getTime());
      return {
        key: instance,
        cells: [
          name,
          ago(since),
          slotsText(worker),
          oldest === undefined ? "" : ago(oldest),
          version ?? "?",
          queues?.join(",") ?? "all",
          tasks.join(","),
        ],
        ...((slots?.overrun ?? 0) > 0 ? { style: "red" } : {}),
      };
    }),
  }),
  jobs: ({ jobs, now }) => ({
    headings: ["state", "task", "queue", "tenant", "tries", "due", "failure"],
    rows: jobs.map(({ id, state, task, queue, tenant, attempts, dueAt, failure }) => ({
      key: id,
      cells: [state, task, queue, tenant, attempts, fromNow(dueAt, now), failure === undefined ? "" : `${failure.name}: ${failure.message}`],
      ...(STYLES[state] === undefined ? {} : { style: STYLES[state] }),
    })),
  }),
};

const STYLES: Readonly<Partial<Record<keyof StateCounts, TextStyle>>> = { running: "cyan", scheduled: "yellow", dead: "red", succeeded: "green" };

function rounded(rate: number): number {
  return Math.round(rate * 10) / 10;
}
