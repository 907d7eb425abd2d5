import type { State } from "pawl";
import { duration, elapsed } from "../words/amounts.js";
import { clean } from "../words/clean.js";
import { bars } from "./bars.js";
import type { Picture, Recent } from "./board.js";
import { durabilityInShort, engineName } from "./words.js";

export type Style = "bold" | "dim" | "green" | "yellow" | "red" | "cyan" | "inverse";
/** A piece of a line, and how it is painted. */
export type Span = readonly [text: string, style?: Style | undefined];
export type Line = readonly Span[];

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** Draws a picture as lines, no more than fit. Pure: what paints them cuts them to the width. */
export function screen(picture: Picture, { columns, rows }: Size): readonly Line[] {
  const head = [...title(picture, columns), [], ...table(picture), throughput(picture, columns), []];
  const rest = Math.max(4, rows - head.length - 1);
  // As high as there are slots, so that what is below stands still while jobs come and go.
  const slots = Math.min(picture.slots, Math.max(1, Math.floor((rest - 3) * 0.6)));
  const recent = Math.max(0, rest - slots - 3);
  const body = [...runningJobs(picture, slots, columns), [], ...history(picture, recent)];
  const above = [...head, ...body].slice(0, rows - 1);
  const gap = Array.from({ length: Math.max(0, rows - 1 - above.length) }, (): Line => []);
  return [...above, ...gap, foot(picture)];
}

function title({ info, api, up }: Picture, columns: number): readonly Line[] {
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
const COLUMNS: readonly (readonly [State, "always" | "sometimes", Style?])[] = [
  ["ready", "always"],
  ["running", "always", "cyan"],
  ["scheduled", "always", "yellow"],
  ["blocked", "always"],
  ["parked", "sometimes"],
  ["succeeded", "always", "green"],
  ["dead", "always", "red"],
  ["cancelled", "sometimes"],
];
const MOST_QUEUES = 6;
const NAME = 13;
const CELL = 10;

function table({ queues }: Picture): readonly Line[] {
  const total = (state: State) => queues.reduce((sum, { counts }) => sum + counts[state], 0);
  const shown = COLUMNS.filter(([state, when]) => when === "always" || total(state) > 0);
  const row = (name: string, style: Style | undefined, count: (state: State) => number): Line => [
    [` ${fit(name, NAME - 1)}`, style],
    ...shown.map(([state, , colour]): Span => {
      const n = count(state);
      return [n.toLocaleString("en").padStart(CELL), n === 0 ? "dim" : (colour ?? style)];
    }),
  ];
  const listed = queues.slice(0, MOST_QUEUES);
  return [
    [[` ${"queue".padEnd(NAME - 1)}${shown.map(([state]) => state.padStart(CELL)).join("")}`, "dim"]],
    ...listed.map(({ queue, paused, counts }) => row(paused ? `${queue} (paused)` : queue, undefined, (state) => counts[state])),
    row(queues.length > listed.length ? `all ${queues.length}` : "all", "bold", total),
  ];
}

const OVER = 5;

function throughput({ rates }: Picture, columns: number): Line {
  // The last second is not over yet.
  const whole = rates.slice(0, -1);
  const rate = whole.slice(-OVER).reduce((sum, count) => sum + count, 0) / OVER;
  const label = ` ${rate.toFixed(1).padStart(5)} jobs/s `;
  const drawn = whole.slice(-Math.max(0, columns - label.length - 2));
  return [
    [label, "bold"],
    [bars(drawn), "cyan"],
  ];
}

const BAR = 24;

function runningJobs({ running, slots }: Picture, most: number, columns: number): readonly Line[] {
  const lines = running.slice(0, running.length > most ? most - 1 : most).map(({ lane, attempt, runningFor, progress, cancelled }): Line => {
    const fraction = typeof progress === "number" && progress >= 0 && progress <= 1 ? progress : undefined;
    const done = Math.round((fraction ?? 0) * BAR);
    const note = cancelled ? "being cancelled" : attempt > 1 ? `attempt ${attempt}` : "";
    return [
      [`   ${fit(lane.task, 18)} `],
      [duration(runningFor).padStart(7), "dim"],
      ...(fraction === undefined
        ? ([[" ".repeat(BAR + 8)]] as const)
        : ([[`  ${"█".repeat(done)}`, "cyan"], ["░".repeat(BAR - done), "dim"], [`${Math.round(fraction * 100)} %`.padStart(6)]] as const)),
      [`  ${note}`, "yellow"],
      ...(columns >= 110 ? ([[`  ${lane.queue}`, "dim"]] as const) : []),
    ];
  });
  if (running.length > most) lines.push([[`   and ${running.length - most + 1} more`, "dim"]]);
  const gap = Array.from({ length: most - lines.length }, (): Line => []);
  return [[[` running ${running.length} of ${slots}`, "bold"]], ...lines, ...gap];
}

const MARKS: Readonly<Record<Recent["kind"], readonly [mark: string, style: Style | undefined]>> = {
  enqueued: ["+", "dim"],
  good: ["✓", "green"],
  again: ["↻", "yellow"],
  dead: ["✗", "red"],
  note: ["·", undefined],
  trouble: ["!", "red"],
};

function history({ recent }: Picture, most: number): readonly Line[] {
  const lines = (most < 1 ? [] : recent.slice(-most)).map(({ kind, subject, text, at, times }): Line => {
    const [mark, style] = MARKS[kind];
    return [
      [`   ${clock(at)} `, "dim"],
      [`${mark} `, style],
      [`${fit(subject, 17)} `, kind === "enqueued" ? "dim" : undefined],
      [`${clean(text)}${times > 1 ? ` (×${times})` : ""}`, kind === "good" ? "dim" : style],
    ];
  });
  return [[[" lately", "bold"]], ...lines];
}

function foot({ stopping, running }: Picture): Line {
  if (!stopping) return [[" Ctrl-C finishes what runs, then exits; the rest waits for the next start", "dim"]];
  return [[` finishing ${running.length} running, then exit … Ctrl-C again exits at once `, "inverse"]];
}

export function clock(at: Date): string {
  return at.toTimeString().slice(0, 8);
}

export function fit(text: string, width: number): string {
  const plain = clean(text);
  return plain.length > width ? `${plain.slice(0, width - 1)}…` : plain.padEnd(width);
}
