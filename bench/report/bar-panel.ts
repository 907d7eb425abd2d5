import { coordinate, INNER, type Piece, text } from "./svg.js";

export interface BarRow {
  readonly label: string;
  readonly value: number;
  /** what stands behind the bar */
  readonly caption: string;
  readonly ours: boolean;
}

const ROW = 28;
const THICK = 18;
const HEAD = 26;
/** for the caption behind the longest bar */
const CAPTION = 110;
/** px of one letter of a label, generously */
const LETTER = 8;

/** Lying bars from zero, one per row, all on one scale. */
export function barPanel(head: string, rows: readonly BarRow[]): Piece {
  const column = Math.min(280, Math.max(90, ...rows.map(({ label }) => label.length * LETTER + 14)));
  const longest = Math.max(...rows.map(({ value }) => value), Number.MIN_VALUE);
  const scale = (INNER - column - CAPTION) / longest;
  const drawn = rows.map(({ label, value, caption, ours }, index) => {
    const top = HEAD + index * ROW;
    const width = coordinate(Math.max(1, value * scale));
    const weight = ours ? "strong" : "";
    return [
      text(column - 10, top + 14, label, weight, "end"),
      `<rect class="${ours ? "ours" : "theirs"}" x="${coordinate(column)}" y="${top}" width="${width}" height="${THICK}" rx="2"/>`,
      text(column + width + 8, top + 14, caption, weight),
    ].join("");
  });
  return { height: HEAD + rows.length * ROW - (ROW - THICK), body: [text(0, 13, head, "head"), ...drawn].join("\n") };
}
