import type { JobState } from "pawl";
import { duration, elapsed } from "../text/amounts.js";
import { clean } from "../text/clean.js";
import { bars } from "./bars.js";
import type { DemoPicture, RecentActivity } from "./demo-board.js";
import { durabilityInShort, engineName } from "./store-phrases.js";

export type TextStyle = "bold" | "dim" | "green" | "yellow" | "red" | "cyan" | "inverse";
/** A piece of a line, and how it is painted. */
export type StyledText = readonly [text: string, style?: TextStyle | undefined];
export type StyledLine = readonly StyledText[];

export interface ScreenSize {
  readonly columns: number;
  readonly rows: number;
}

/** Draws a picture as lines, no more than fit. Pure: what paints them cuts them to the width. */
export function demoScreen(picture: DemoPicture, { columns, rows }: ScreenSize): readonly StyledLine[] {
  const head = [...title(picture, columns), [], ...table(picture), throughput(picture, columns), []];
  const rest = Math.max(4, rows - head.length - 1);
  // As high as there are slots, so that what is below stands still while jobs come and go.
  const slots = Math.min(picture.slots, Math.max(1, Math.floor((rest - 3) * 0.6)));
  const recent = Math.max(0, rest - slots - 3);
  const body = [...runningJobs(picture, slots, columns), [], ...history(picture, recent)];
  const above = [...head, ...body].slice(0, rows - 1);
  const gap = Array.from({ length: Math.max(0, rows - 1 - above.length) }, (): StyledLine => []);
  return [...above, ...gap, foot(picture)];
}

function title({ info, api, up }: DemoPicture, columns: number): readonly StyledLine[] {
  const left = ` pawl · ${engineName(info)} · ${durabilityInShort(info)}`;
  const right = `up ${elapsed(up)} `;
  return [
    [
      [left, "bold"],
      [right.padStart(Math.max(right.length + 1, columns - left.length)), "dim"],
    ],
    [[` data in ${info.place}${api === undefined ? "" : ` · API at ${api}`}`, "dim"]],
  ];
}

/** Those that are usually empty are shown only when they are not. */
const COLUMNS: readonly (readonly [JobState, "always" | "sometimes", TextStyle?])[] = [
  ["ready", "always"],
  ["running", "always", "cyan"],
  ["scheduled", "always", "yellow"],
  ["blocked", "always"],
  ["parked", "sometimes"],
  ["succeeded", "always", "green"],
  ["dead", "always", "red"],
  ["cancelled", "sometimes"],
];
const MAX_QUEUES = 6;
const NAME_WIDTH = 13;
const CELL_WIDTH = 10;

function table({ queues }: DemoPicture): readonly StyledLine[] {
  const total = (state: JobState) => queues.reduce((sum, { counts }) => sum + counts[state], 0);
  const visibleColumns = COLUMNS.filter(([state, when]) => when === "always" || total(state) > 0);
  const row = (name: string, style: TextStyle | undefined, count: (state: JobState) => number): StyledLine => [
    [` ${fitText(name, NAME_WIDTH - 1)}`, style],
    ...visibleColumns.map(([state, , colour]): StyledText => {
      const n = count(state);
      return [n.toLocaleString("en").padStart(CELL_WIDTH), n === 0 ? "dim" : (colour ?? style)];
    }),
  ];
  const listed = queues.slice(0, MAX_QUEUES);
  return [
    [[` ${"queue".padEnd(NAME_WIDTH - 1)}${visibleColumns.map(([state]) => state.padStart(CELL_WIDTH)).join("")}`, "dim"]],
    ...listed.map(({ queue, paused, counts }) => row(paused ? `${queue} (paused)` : queue, undefined, (state) => counts[state])),
    row(queues.length > listed.length ? `all ${queues.length}` : "all", "bold", total),
  ];
}

const RATE_WINDOW_SECONDS = 5;

function throughput({ rates }: DemoPicture, columns: number): StyledLine {
  // The last second is not over yet.
  const whole = rates.slice(0, -1);
  const rate = whole.slice(-RATE_WINDOW_SECONDS).reduce((sum, count) => sum + count, 0) / RATE_WINDOW_SECONDS;
  const label = ` ${rate.toFixed(1).padStart(5)} jobs/s `;
  const drawn = whole.slice(-Math.max(0, columns - label.length - 2));
  return [
    [label, "bold"],
    [bars(drawn), "cyan"],
  ];
}

const BAR_WIDTH = 24;

function runningJobs({ running, slots }: DemoPicture, maxLines: number, columns: number): readonly StyledLine[] {
  const lines = running
    .slice(0, running.length > maxLines ? maxLines - 1 : maxLines)
    .map(({ lane, attempt, runningFor, progress, cancelled }): StyledLine => {
      const fraction = typeof progress === "number" && progress >= 0 && progress <= 1 ? progress : undefined;
      const done = Math.round((fraction ?? 0) * BAR_WIDTH);
      const note = cancelled ? "being cancelled" : attempt > 1 ? `attempt ${attempt}` : "";
      return [
        [`   ${fitText(lane.task, 18)} `],
        [duration(runningFor).padStart(7), "dim"],
        ...(fraction === undefined
          ? ([[" ".repeat(BAR_WIDTH + 8)]] as const)
          : ([[`  ${"█".repeat(done)}`, "cyan"], ["░".repeat(BAR_WIDTH - done), "dim"], [`${Math.round(fraction * 100)} %`.padStart(6)]] as const)),
        [`  ${note}`, "yellow"],
        ...(columns >= 110 ? ([[`  ${lane.queue}`, "dim"]] as const) : []),
      ];
    });
  if (running.length > maxLines) lines.push([[`   and ${running.length - maxLines + 1} more`, "dim"]]);
  const gap = Array.from({ length: maxLines - lines.length }, (): StyledLine => []);
  return [[[` running ${running.length} of ${slots}`, "bold"]], ...lines, ...gap];
}

const MARKS: Readonly<Record<RecentActivity["kind"], readonly [mark: string, style: TextStyle | undefined]>> = {
  enqueued: ["+", "dim"],
  good: ["✓", "green"],
  again: ["↻", "yellow"],
  dead: ["✗", "red"],
  note: ["·", undefined],
  trouble: ["!", "red"],
};

function history({ recent }: DemoPicture, maxLines: number): readonly StyledLine[] {
  const lines = (maxLines < 1 ? [] : recent.slice(-maxLines)).map(({ kind, subject, text, at, times }): StyledLine => {
    const [mark, style] = MARKS[kind];
    return [
      [`   ${clock(at)} `, "dim"],
      [`${mark} `, style],
      [`${fitText(subject, 17)} `, kind === "enqueued" ? "dim" : undefined],
      [`${clean(text)}${times > 1 ? ` (×${times})` : ""}`, kind === "good" ? "dim" : style],
    ];
  });
  return [[[" lately", "bold"]], ...lines];
}

function foot({ stopping, running }: DemoPicture): StyledLine {
  if (!stopping) return [[" Ctrl-C finishes what runs, then exits; the rest waits for the next start", "dim"]];
  return [[` finishing ${running.length} running, then exit … Ctrl-C again exits at once `, "inverse"]];
}

export function clock(at: Date): string {
  return at.toTimeString().slice(0, 8);
}

export function fitText(text: string, width: number): string {
  const plain = clean(text);
  return plain.length > width ? `${plain.slice(0, width - 1)}…` : plain.padEnd(width);
}
