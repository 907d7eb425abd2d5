/** What a terminal shows, as `tmux capture-pane -e` tells it, drawn: SVG that needs no font but the reader's own. */
const CELL = { width: 8.4, height: 18 } as const;
const EDGE = 12;
const PAPER = "#16181d";
const INK = "#d8dbe2";
/** 30 to 37; the bright ones, 90 to 97, are drawn the same */
const INKS = ["#5c6370", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", INK] as const;

interface Style {
  readonly ink?: string;
  readonly bold?: boolean;
  readonly dim?: boolean;
  readonly inverse?: boolean;
}

/** Letters of one style that stand side by side. */
interface Run {
  readonly column: number;
  readonly text: string;
  readonly style: Style;
}

export interface Shown {
  readonly columns: number;
  readonly title: string;
}

export function terminalSvg(rows: readonly string[], { columns, title }: Shown): string {
  const width = Math.ceil(columns * CELL.width + 2 * EDGE);
  const height = rows.length * CELL.height + 2 * EDGE;
  const drawn = runsOf(rows).flatMap((runs, row) => runs.flatMap((run) => draw(run, row)));
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="100%" height="100%" rx="6" fill="${PAPER}"/>`,
    ...drawn,
    "</svg>",
  ].join("\n")}\n`;
}

/** A style goes on into the next row: tmux says only what changes. */
function runsOf(rows: readonly string[]): readonly (readonly Run[])[] {
  let style: Style = {};
  return rows.map((row) => {
    const runs: Run[] = [];
    let column = 0;
    // What comes before the first of them is in the style of the row above.
    for (const [i, part] of row.split("\x1b[").entries()) {
      const [, codes = "", text = part] = (i === 0 ? null : /^([\d;]*)m(.*)$/.exec(part)) ?? [];
      if (i > 0) for (const code of codes.split(";")) style = styled(style, Number(code));
      if (text !== "") runs.push({ column, text, style });
      column += [...text].length;
    }
    return runs;
  });
}

function styled(style: Style, code: number): Style {
  if (code === 0) return {};
  if (code === 1) return { ...style, bold: true };
  if (code === 2) return { ...style, dim: true };
  if (code === 7) return { ...style, inverse: true };
  if (code === 39) return { ...style, ink: INK };
  const ink = INKS[code >= 90 ? code - 90 : code - 30];
  return ink === undefined ? style : { ...style, ink };
}

function draw({ column, text, style }: Run, row: number): readonly string[] {
  const top = EDGE + row * CELL.height;
  const { ink = INK } = style;
  const drawn: string[] = [];
  if (style.inverse) {
    const size = `width="${round([...text].length * CELL.width)}" height="${CELL.height}"`;
    drawn.push(`<rect x="${x(column)}" y="${top}" ${size} fill="${ink}"/>`);
  }
  // Each word of a table begins at a place of its own, so that columns stand even where the font is narrower.
  for (const word of text.matchAll(/\S+(?: \S+)*/g)) {
    const length = [...word[0]].length;
    const at = column + [...text.slice(0, word.index)].length;
    const look = [style.bold ? ' font-weight="bold"' : "", style.dim ? ' opacity="0.6"' : ""].join("");
    const place = `x="${x(at)}" y="${top + 13}" textLength="${round(length * CELL.width)}"`;
    drawn.push(`<text ${place} fill="${style.inverse ? PAPER : ink}"${look}>${escaped(word[0])}</text>`);
  }
  return drawn;
}

const x = (column: number) => round(EDGE + column * CELL.width);
const round = (size: number) => Math.round(size * 10) / 10;

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
