import pc from "picocolors";
import type { Paint } from "./table.js";

/** For a terminal; picocolors itself leaves colours out where NO_COLOR or a pipe asks for it. */
export const COLOURED: Paint = { good: pc.green, bad: pc.red, strong: pc.bold, faint: pc.dim };
