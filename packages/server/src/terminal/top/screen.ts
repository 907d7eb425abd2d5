import { clean } from "../../text/clean.js";
import { clock, fitText, type ScreenSize, type StyledLine, type StyledText } from "../demo-screen.js";
import { engineName } from "../store-phrases.js";
import type { TopData } from "./data.js";
import { jobLines } from "./job.js";
import { type TopRow, type TopSheet, VIEWS } from "./rows.js";
import type { TopState } from "./state.js";

/** Draws `top` as lines, as many as there are rows. Pure: what paints them cuts them to the width. */
export function topScreen(state: TopState, data: TopData, sheet: TopSheet, { columns, rows }: ScreenSize): readonly StyledLine[] {
  const head = [title(data, columns), tabs(state), []];
  const room = roomOf(rows);
  const body = state.job === undefined ? table(state, sheet, room, columns) : scrolled(jobLines(data, columns), state.scroll, room);
  const above = [...head, ...body].slice(0, rows - 1);
  const gap = Array.from({ length: Math.max(0, rows - 1 - above.length) }, (): StyledLine => []);
  return [...above, ...gap, foot(state, data)];
}

/** Lines between head and foot. */
function roomOf(rows: number): number {
  return Math.max(1, rows - 4);
}

function scrolled(lines: readonly StyledLine[], scroll: number, room: number): readonly StyledLine[] {
  // What is looked at may have become shorter, or the window higher.
  const from = Math.min(scroll, Math.max(0, lines.length - room));
  return lines.slice(from, from + room);
}

/** How far the job that is looked at can be scrolled. */
export function maxScrollOf(data: TopData, { columns, rows }: ScreenSize): number {
  return Math.max(0, jobLines(data, columns).length - roomOf(rows));
}

function title({ info, queues, rates, now }: TopData, columns: number): StyledLine {
  const sum = (of: (queue: TopData["queues"][number]) => number) => queues.reduce((total, queue) => total + of(queue), 0);
  const done = [...rates.values()].reduce((total, rate) => total + rate.done, 0);
  const left = ` pawl top · ${info === undefined ? "…" : `${info.place} · ${engineName(info)}`}`;
  const counts = `${count(sum(({ counts: { ready } }) => ready))} ready · ${count(sum(({ counts: { running } }) => running))} running · ${done.toFixed(1)}/s `;
  const right = `${counts}· ${now.getTime() === 0 ? "" : clock(now)} `;
  const short = fitText(left, Math.max(1, Math.min(left.length, columns - right.length - 1)));
  return [
    [short, "bold"],
    [right.padStart(Math.max(right.length + 1, columns - short.length)), "dim"],
  ];
}

function tabs({ view, job, jobs, filter, typing }: TopState): StyledLine {
  const names = VIEWS.map((name, index): StyledText => [` ${index + 1} ${name} `, name === view ? "inverse" : "dim"]);
  const filterText = [jobs.state ?? "all", jobs.queue, jobs.task, jobs.tenant].filter((part) => part !== undefined).join(" · ");
  const chosen: StyledText[] = view === "jobs" ? [[`  ${job ?? filterText}`, "cyan"]] : [];
  const filterInput: StyledText[] = typing || filter !== "" ? [[`  /${clean(filter)}${typing ? "▏" : ""}`, "yellow"]] : [];
  return [[" "], ...names, ...chosen, ...filterInput];
}

const MAX_CELL_WIDTH = 28;

function table(state: TopState, { headings, rows }: TopSheet, room: number, columns: number): readonly StyledLine[] {
  const sorted = state.sort[state.view] % headings.length;
  const texts = (row: TopRow) => row.cells.map((cell) => (typeof cell === "number" ? count(cell) : clean(cell)));
  const all = rows.map(texts);
  const numeric = headings.map((_, column) => rows.length > 0 && rows.every(({ cells }) => typeof cells[column] === "number"));
  const widths = headings.map((heading, column) =>
    Math.min(MAX_CELL_WIDTH, Math.max(heading.length + 1, ...all.map((row) => row[column]?.length ?? 0))),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => {
        const width = widths[column] as number;
        if (column === headings.length - 1 && numeric[column] !== true) return cell;
        return numeric[column] === true ? cell.padStart(width) : fitText(cell, width);
      })
      .join("  ");
  const at = Math.max(
    0,
    rows.findIndex(({ key }) => key === state.chosen),
  );
  const maxRows = Math.max(1, room - 1);
  const first = Math.max(0, Math.min(at - Math.floor(maxRows / 2), rows.length - maxRows));
  const visibleRows = rows.slice(first, first + maxRows).map((row, index): StyledLine => {
    const text = ` ${line(all[first + index] as readonly string[])}`;
    return first + index === at ? [[text.slice(0, columns).padEnd(columns), "inverse"]] : [[text, row.style]];
  });
  const marked = headings.map((heading, column) => (column === sorted ? `${heading}▾` : heading));
  return [[[` ${line(marked)}`, "dim"]], ...(rows.length === 0 ? [[["   nothing here", "dim"]] as StyledLine] : visibleRows)];
}

function foot({ view, job, typing, message }: TopState, { trouble }: TopData): StyledLine {
  if (typing) return [[" type to filter · enter keeps it · esc drops it", "inverse"]];
  if (trouble !== undefined) return [[` ${clean(trouble)}`, "red"]];
  if (message !== undefined) return [[` ${clean(message)}`, "yellow"]];
  if (job !== undefined) return [[" ↑↓ scroll · p pause/resume · r promote/redrive · esc back · q quit", "dim"]];
  const own =
    view === "queues"
      ? " · enter jobs · p pause/resume"
      : view === "lanes"
        ? " · enter jobs"
        : view === "jobs"
          ? " · enter show · f state · p pause · r run"
          : "";
  return [[` ↑↓ s sort · / filter${own} · 1-4 · q quit`, "dim"]];
}

function count(n: number): string {
  return n.toLocaleString("en");
}
