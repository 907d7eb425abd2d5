import { clean } from "../text/clean.js";
import type { StyledLine, StyledText } from "./demo-screen.js";

/** Text in lines of a width, broken between words where that can be; its own line ends stay. */
export function wrap(text: string, width: number): readonly string[] {
  return text.split(/\r\n|\r|\n/).flatMap((line) => {
    const pieces: string[] = [];
    let rest = clean(line);
    while (rest.length > width) {
      const space = rest.lastIndexOf(" ", width);
      const end = space > width / 2 ? space : width;
      pieces.push(rest.slice(0, end).trimEnd());
      rest = rest.slice(end).trimStart();
    }
    return [...pieces, rest];
  });
}

const MIN_WIDTH = 10;

/** A text after a head, whole: what does not fit beside it goes on below, as far in. */
export function hanging(head: StyledLine, text: string, columns: number, style?: StyledText[1]): readonly StyledLine[] {
  const indent = head.reduce((sum, [piece]) => sum + piece.length, 0);
  const [first = "", ...more] = wrap(text, Math.max(MIN_WIDTH, columns - indent - 1));
  return [[...head, [first, style]], ...more.map((line): StyledLine => [[" ".repeat(indent)], [line, style]])];
}
