import { createColors } from "picocolors";
import { clean } from "./text.js";

export type CellStyle = "bold" | "dim" | "green" | "yellow" | "red" | "cyan";
/** A text, a number, or one of them in a style; nothing is an empty cell. */
export type Cell = string | number | undefined | { readonly text: string | number; readonly style: CellStyle };

const colours = createColors(true);

export function textOf(cell: Cell): string {
  if (cell === undefined) return "";
  const value = typeof cell === "object" ? cell.text : cell;
  return typeof value === "number" ? value.toLocaleString("en") : clean(value);
}

export function paint(cell: Cell, colour: boolean, text = textOf(cell)): string {
  return colour && typeof cell === "object" ? colours[cell.style](text) : text;
}

/** Fields with tabs between, numbers as programs read them. */
export function rowsAsText(rows: readonly (readonly Cell[])[]): readonly string[] {
  return rows.map((row) => row.map(plain).join("\t"));
}

function plain(cell: Cell): string {
  const value = typeof cell === "object" ? cell.text : cell;
  return typeof value === "number" ? String(value) : textOf(cell);
}

/** Columns as wide as what is in them, numbers to the right; the last one ends at the edge. */
export function rowsAsTable(headings: readonly string[], rows: readonly (readonly Cell[])[], width: number, colour: boolean): readonly string[] {
  const numeric = headings.map((_, column) => rows.length > 0 && rows.every((row) => isNumber(row[column])));
  const widths = headings.map((heading, column) => Math.max(heading.length, ...rows.map((row) => textOf(row[column]).length)));
  const padCell = (text: string, column: number) =>
    numeric[column] === true
      ? text.padStart(widths[column] as number)
      : column === headings.length - 1
        ? text
        : text.padEnd(widths[column] as number);
  const line = (cells: readonly Cell[]) => {
    let left = width;
    return cells
      .map((cell, column) => {
        const gap = column === 0 ? "" : "  ";
        const text = `${gap}${padCell(textOf(cell), column)}`.slice(0, Math.max(0, left));
        left -= text.length;
        return paint(cell, colour, text);
      })
      .join("")
      .trimEnd();
  };
  return [line(headings.map((text): Cell => ({ text: text.toUpperCase(), style: "dim" }))), ...rows.map(line)];
}

function isNumber(cell: Cell): boolean {
  return cell === undefined || typeof (typeof cell === "object" ? cell.text : cell) === "number";
}
