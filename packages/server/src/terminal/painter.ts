import { writeSync } from "node:fs";
import type { WriteStream } from "node:tty";
import colours from "picocolors";
import type { ScreenSize, StyledLine } from "./demo-screen.js";

const FRAME_MS = 200;
const STDOUT = 1;
/** The alternate screen, so that what was in the terminal is there again at the end; no cursor; no wrapping. */
const ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/** The terminal shows what is between these as one change, where it knows them. */
const BEGIN = "\x1b[?2026h";
const END = "\x1b[?2026l";

/** A picture on the terminal. */
export interface PaintedScreen {
  /** at once, since something was pressed */
  repaint(): void;
  hide(): void;
}

/** Repaints in place, only the lines that changed, until the answer is called. */
export function paintOn(terminal: WriteStream, draw: (size: ScreenSize) => readonly StyledLine[], pace = FRAME_MS): PaintedScreen {
  let painted: readonly string[] = [];

  const paint = (line: StyledLine, width: number): string => {
    let left = width;
    let text = "";
    for (const [piece, style] of line) {
      const part = piece.slice(0, left);
      left -= part.length;
      text += style === undefined ? part : colours[style](part);
    }
    return text;
  };
  const frame = () => {
    const { columns = 80, rows = 24 } = terminal;
    const next = draw({ columns, rows }).map((line) => paint(line, columns));
    const changed = next.map((line, row) => (line === painted[row] ? "" : `\x1b[${row + 1};1H${line}\x1b[K`)).join("");
    painted = next;
    // The terminal echoes ^C where the cursor is: at the foot, which is painted anew when that is pressed.
    if (changed !== "") terminal.write(`${BEGIN}${changed}\x1b[${rows};1H${END}`);
  };
  const anew = () => {
    painted = [];
    terminal.write("\x1b[2J");
    frame();
  };
  // However the process ends, the terminal is handed back: at once, since nothing queued is written any more by then.
  const restore = () => void writeSync(STDOUT, LEAVE);

  terminal.write(ENTER);
  anew();
  const timer = setInterval(frame, pace);
  terminal.on("resize", anew);
  process.on("SIGCONT", anew);
  process.on("exit", restore);
  return {
    repaint: frame,
    hide() {
      clearInterval(timer);
      terminal.off("resize", anew);
      process.off("SIGCONT", anew);
      process.off("exit", restore);
      terminal.write(LEAVE);
    },
  };
}
