import type { State } from "pawl";
import type { Key } from "./keys.js";
import { VIEWS, type View } from "./top-rows.js";

/** Where somebody is in `top`. Changed by keys only, by `press`. */
export interface TopState {
  readonly view: View;
  /** the job that is looked at, over the view */
  readonly job?: string;
  /** how far down in it, in lines */
  readonly scroll: number;
  /** the key of the chosen row */
  readonly chosen?: string;
  /** the column each view is sorted by */
  readonly sort: Readonly<Record<View, number>>;
  readonly filter: string;
  /** keys go into the filter */
  readonly typing: boolean;
  readonly jobs: { readonly state: State | undefined; readonly queue?: string; readonly task?: string; readonly tenant?: string };
  /** what came of the last thing done */
  readonly message?: string;
}

export const START: TopState = {
  view: "queues",
  scroll: 0,
  sort: { queues: 1, lanes: 0, workers: 0, jobs: 5 },
  filter: "",
  typing: false,
  jobs: { state: "running" },
};

/** What a key asks for beyond a look. */
export type Wish = { readonly kind: "quit" } | { readonly kind: "pause" | "retry"; readonly view: View; readonly key: string };

export interface Pressed {
  readonly state: TopState;
  readonly wish?: Wish;
}

const CYCLE: readonly (State | undefined)[] = ["running", "ready", "scheduled", "dead", "parked", undefined];
const PAGE = 10;

/** What there is to move in: the keys of the rows that are shown, in order; columns to sort by; lines of a job out of sight. */
export interface Around {
  readonly keys: readonly string[];
  readonly columns: number;
  readonly deepest: number;
}

/** What a key does; pure. */
export function press(state: TopState, key: Key, { keys, columns, deepest }: Around): Pressed {
  if (key === "quit") return { state, wish: { kind: "quit" } };
  if (state.typing) return { state: typed(state, key) };
  const { message: _, ...quiet } = state;
  const at = state.job === undefined ? Math.max(0, keys.indexOf(state.chosen ?? "")) : Math.min(state.scroll, deepest);
  const move = (to: number): Pressed => {
    if (state.job !== undefined) return { state: { ...quiet, scroll: Math.max(0, Math.min(deepest, to)) } };
    const chosen = keys[Math.max(0, Math.min(keys.length - 1, to))];
    return { state: { ...quiet, ...(chosen === undefined ? {} : { chosen }) } };
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
      return move(at - PAGE);
    case "page-down":
      return move(at + PAGE);
    case "home":
      return move(0);
    case "end":
      // It stays there, also when more comes or the window changes.
      return state.job === undefined ? move(keys.length - 1) : { state: { ...quiet, scroll: Number.POSITIVE_INFINITY } };
    case "enter":
      return { state: target === undefined ? quiet : into(quiet, target) };
    case "escape":
    case "backspace":
      return { state: back(quiet) };
    case "/":
      return { state: { ...quiet, typing: true, filter: "" } };
    case "s":
      return { state: { ...quiet, sort: { ...quiet.sort, [quiet.view]: (quiet.sort[quiet.view] + 1) % columns } } };
    case "f":
      return { state: { ...quiet, jobs: { ...quiet.jobs, state: CYCLE[(CYCLE.indexOf(quiet.jobs.state) + 1) % CYCLE.length] } } };
    case "p":
    case "r":
      return target === undefined
        ? { state: quiet }
        : { state: quiet, wish: { kind: key === "p" ? "pause" : "retry", view: state.view, key: target } };
    case "q":
      return { state: quiet, wish: { kind: "quit" } };
    default: {
      const view = VIEWS[Number(key) - 1];
      return { state: view === undefined ? quiet : opened(quiet, view) };
    }
  }
}

function typed(state: TopState, key: Key): TopState {
  if (key === "enter") return { ...state, typing: false };
  if (key === "escape") return { ...state, typing: false, filter: "" };
  if (key === "backspace") return { ...state, filter: state.filter.slice(0, -1) };
  return [...key].length === 1 ? { ...state, filter: state.filter + key } : state;
}

function opened({ chosen: _, job: __, ...state }: TopState, view: View): TopState {
  return { ...state, view, filter: "", ...(view === "jobs" ? { jobs: { state: state.jobs.state } } : {}) };
}

/** A queue and a lane lead to their jobs, a job to all about it. */
function into(state: TopState, key: string): TopState {
  switch (state.view) {
    case "queues":
      return { ...opened(state, "jobs"), jobs: { state: state.jobs.state, queue: key } };
    case "lanes": {
      const [queue = "", , tenant = "", task = ""] = key.split("\u0001");
      return { ...opened(state, "jobs"), jobs: { state: "ready", queue, tenant, task } };
    }
    case "jobs":
      return { ...state, job: key, scroll: 0 };
    default:
      return state;
  }
}

function back({ job, ...state }: TopState): TopState {
  if (job !== undefined) return state;
  if (state.filter !== "") return { ...state, filter: "" };
  return state.view === "queues" ? state : opened(state, "queues");
}
