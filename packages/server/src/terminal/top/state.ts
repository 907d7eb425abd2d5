import type { JobState } from "pawl";
import { type LaneKey, parseLaneKey } from "pawl/service";
import type { Key } from "../keys.js";
import { type TopView, VIEWS } from "./rows.js";

/** Where somebody is in `top`. Changed by keys only, by `press`. */
export interface TopState {
  readonly view: TopView;
  /** the job that is looked at, over the view */
  readonly job?: string;
  /** how far down in it, in lines */
  readonly scroll: number;
  /** the key of the chosen row */
  readonly chosen?: string;
  /** the column each view is sorted by */
  readonly sort: Readonly<Record<TopView, number>>;
  readonly filter: string;
  /** keys go into the filter */
  readonly typing: boolean;
  readonly jobs: { readonly state: JobState | undefined; readonly queue?: string; readonly task?: string; readonly tenant?: string };
  /** what came of the last thing done */
  readonly message?: string;
}

export const INITIAL_STATE: TopState = {
  view: "queues",
  scroll: 0,
  sort: { queues: 1, lanes: 0, workers: 0, jobs: 5 },
  filter: "",
  typing: false,
  jobs: { state: "running" },
};

/** What a key asks for beyond a look. */
export type TopAction = { readonly kind: "quit" } | { readonly kind: "pause" | "promote"; readonly view: TopView; readonly key: string };

export interface KeyResult {
  readonly state: TopState;
  readonly action?: TopAction;
}

const STATE_CYCLE: readonly (JobState | undefined)[] = ["running", "ready", "scheduled", "dead", "parked", undefined];
const PAGE_LINES = 10;

/** What there is to move in: the keys of the rows that are shown, in order; columns to sort by; lines of a job out of sight. */
export interface MoveBounds {
  readonly keys: readonly string[];
  readonly columns: number;
  readonly maxScroll: number;
}

/** What a key does; pure. */
export function press(state: TopState, key: Key, { keys, columns, maxScroll }: MoveBounds): KeyResult {
  if (key === "quit") return { state, action: { kind: "quit" } };
  if (state.typing) return { state: typeKey(state, key) };
  const { message: _, ...withoutMessage } = state;
  const at = state.job === undefined ? Math.max(0, keys.indexOf(state.chosen ?? "")) : Math.min(state.scroll, maxScroll);
  const move = (to: number): KeyResult => {
    if (state.job !== undefined) return { state: { ...withoutMessage, scroll: Math.max(0, Math.min(maxScroll, to)) } };
    const chosen = keys[Math.max(0, Math.min(keys.length - 1, to))];
    return { state: { ...withoutMessage, ...(chosen === undefined ? {} : { chosen }) } };
  };
  const target = state.job ?? keys[at];
  switch (key) {
    case "up":
    case "k":
      return move(at - 1);
    case "down":
    case "j":
      return move(at + 1);
    case "page-up":
      return move(at - PAGE_LINES);
    case "page-down":
      return move(at + PAGE_LINES);
    case "home":
      return move(0);
    case "end":
      // It stays there, also when more comes or the window changes.
      return state.job === undefined ? move(keys.length - 1) : { state: { ...withoutMessage, scroll: Number.POSITIVE_INFINITY } };
    case "enter":
      return { state: target === undefined ? withoutMessage : openChosen(withoutMessage, target) };
    case "escape":
    case "backspace":
      return { state: goBack(withoutMessage) };
    case "/":
      return { state: { ...withoutMessage, typing: true, filter: "" } };
    case "s":
      return {
        state: {
          ...withoutMessage,
          sort: { ...withoutMessage.sort, [withoutMessage.view]: (withoutMessage.sort[withoutMessage.view] + 1) % columns },
        },
      };
    case "f":
      return {
        state: {
          ...withoutMessage,
          jobs: { ...withoutMessage.jobs, state: STATE_CYCLE[(STATE_CYCLE.indexOf(withoutMessage.jobs.state) + 1) % STATE_CYCLE.length] },
        },
      };
    case "p":
    case "r":
      return target === undefined
        ? { state: withoutMessage }
        : { state: withoutMessage, action: { kind: key === "p" ? "pause" : "promote", view: state.view, key: target } };
    case "q":
      return { state: withoutMessage, action: { kind: "quit" } };
    default: {
      const view = VIEWS[Number(key) - 1];
      return { state: view === undefined ? withoutMessage : openView(withoutMessage, view) };
    }
  }
}

function typeKey(state: TopState, key: Key): TopState {
  if (key === "enter") return { ...state, typing: false };
  if (key === "escape") return { ...state, typing: false, filter: "" };
  if (key === "backspace") return { ...state, filter: state.filter.slice(0, -1) };
  return [...key].length === 1 ? { ...state, filter: state.filter + key } : state;
}

function openView({ chosen: _, job: __, ...state }: TopState, view: TopView): TopState {
  return { ...state, view, filter: "", ...(view === "jobs" ? { jobs: { state: state.jobs.state } } : {}) };
}

/** A queue and a lane lead to their jobs, a job to all about it. */
function openChosen(state: TopState, key: string): TopState {
  switch (state.view) {
    case "queues":
      return { ...openView(state, "jobs"), jobs: { state: state.jobs.state, queue: key } };
    case "lanes": {
      const { queue, tenant, task } = parseLaneKey(key as LaneKey);
      return { ...openView(state, "jobs"), jobs: { state: "ready", queue, tenant, task } };
    }
    case "jobs":
      return { ...state, job: key, scroll: 0 };
    default:
      return state;
  }
}

function goBack({ job, ...state }: TopState): TopState {
  if (job !== undefined) return state;
  if (state.filter !== "") return { ...state, filter: "" };
  return state.view === "queues" ? state : openView(state, "queues");
}
