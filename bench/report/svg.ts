/** A piece of a chart: how high it is, and its elements, drawn from its own top left corner. */
export interface Piece {
  readonly height: number;
  readonly body: string;
}

export const WIDTH = 760;
export const PADDING = 24;
/** what a piece may fill */
export const INNER = WIDTH - 2 * PADDING;

/** Colours by class, so that one picture serves light and dark pages. It paints its own ground, so it is never lost on the page's. */
const STYLE = `
text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; font-size: 13px; fill: #1f2328 }
.ground { fill: #ffffff; stroke: #d1d9e0 }
.title { font-size: 17px; font-weight: 600 }
.head { font-weight: 600 }
.muted { fill: #59636e; font-size: 12px }
.ours { fill: #0d7d6c }
.theirs { fill: #aab4be }
.strong { font-weight: 600 }
.grid { stroke: #d1d9e0; stroke-width: 1 }
.line { fill: none; stroke-width: 2.5; stroke-linejoin: round; stroke-linecap: round }
.tone0 { stroke: #0d7d6c } .tone1 { stroke: #bc4c00 } .tone2 { stroke: #4361c2 } .tone3 { stroke: #8250a8 }
.dot0 { fill: #0d7d6c } .dot1 { fill: #bc4c00 } .dot2 { fill: #4361c2 } .dot3 { fill: #8250a8 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.ground { fill: #0d1117; stroke: #30363d }
.muted { fill: #9198a1 }
.ours { fill: #2bb8a0 }
.theirs { fill: #59636e }
.grid { stroke: #30363d }
.tone0 { stroke: #2bb8a0 } .tone1 { stroke: #f0883e } .tone2 { stroke: #8aa4ff } .tone3 { stroke: #c297e8 }
.dot0 { fill: #2bb8a0 } .dot1 { fill: #f0883e } .dot2 { fill: #8aa4ff } .dot3 { fill: #c297e8 }
}`;

/** How many tones lines can have; the first is Pawl's. */
export const TONES = 4;

/** A whole picture: a title, pieces one below the other, and a note in small type. */
export function card(title: string, pieces: readonly Piece[], note: string): string {
  const parts: string[] = [text(PADDING, 38, title, "title")];
  let top = 56;
  for (const piece of pieces) {
    parts.push(`<g transform="translate(${PADDING} ${top})">${piece.body}</g>`);
    top += piece.height + 18;
  }
  for (const line of wrapped(note, 108)) {
    parts.push(text(PADDING, top + 8, line, "muted"));
    top += 16;
  }
  const height = Math.ceil(top + 14);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}\n</style>`,
    `<rect class="ground" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

export function text(x: number, y: number, content: string, className = "", anchor: "start" | "middle" | "end" = "start"): string {
  const place = anchor === "start" ? "" : ` text-anchor="${anchor}"`;
  const style = className === "" ? "" : ` class="${className}"`;
  return `<text x="${coordinate(x)}" y="${coordinate(y)}"${style}${place}>${escaped(content)}</text>`;
}

export function escaped(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** A tenth of a pixel is enough, and keeps pictures small and their differences readable. */
export function coordinate(value: number): number {
  return Math.round(value * 10) / 10;
}

function wrapped(content: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of content.split(/\s+/).filter(Boolean)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
