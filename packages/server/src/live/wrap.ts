import { clean } from "../words/clean.js";
import type { Line, Span } from "./screen.js";

/** Text in lines of a width, broken between words where that can be; its own line ends stay. */
export function wrap(text: string, width: number): readonly string[] {
  return text.split(/\r\n|\r|\n/).flatMap((line) => {
    const pieces: string[] = [];
    let rest = clean(line);
    while (rest.length > width) {
      const space = rest.lastIndexOf(" ", width);
      const cut = space > width / 2 ? space : width;
      pieces.push(rest.slice(0, cut).trimEnd());
      rest = rest.slice(cut).trimStart();
    }
    return [...pieces, rest];
  });
}

const NARROWEST = 10;

/** A text after a head, whole: what does not fit beside it goes on below, as far in. */
export function hanging(head: Line, text: string, columns: number, style?: Span[1]): readonly Line[] {
  const indent = head.reduce((sum, [piece]) => sum + piece.length, 0);
  const [first = "", ...more] = wrap(text, Math.max(NARROWEST, columns - indent - 1));
  return [[...head, [first, style]], ...more.map((line): Line => [[" ".repeat(indent)], [line, style]])];
}
