import type { Curve } from "../contract/scenario.js";
import { short } from "./figures.js";
import { coordinate, INNER, type Piece, TONES, text } from "./svg.js";

type ChartLine = Curve["lines"][number];

const TOP = 44;
const PLOT = 180;
const LEFT = 52;
const RIGHT = 36;
const STEPS = 4;

/** Lines over evenly spaced stops, from zero, so that flat looks flat. */
export function linePanel({ head, stops, lines, unit = "" }: Curve): Piece {
  const top = ceiling(Math.max(...lines.flatMap(({ values }) => values.filter((value) => value !== null)), 0));
  const across = (index: number) => LEFT + (stops.length < 2 ? 0.5 : index / (stops.length - 1)) * (INNER - LEFT - RIGHT);
  const up = (value: number) => TOP + PLOT - (value / top) * PLOT;
  const grid = Array.from({ length: STEPS + 1 }, (_, step) => {
    const value = (top / STEPS) * step;
    const y = coordinate(up(value));
    return `<line class="grid" x1="${LEFT}" y1="${y}" x2="${INNER}" y2="${y}"/>${text(LEFT - 8, y + 4, `${short(value)}${step === STEPS ? unit : ""}`, "muted", "end")}`;
  });
  const every = Math.ceil(stops.length / 12);
  const labels = stops.map((stop, index) => (index % every === 0 ? text(across(index), TOP + PLOT + 18, stop, "muted", "middle") : ""));
  const drawn = lines.map(({ values }, index) => drawnLine(values, index % TONES, across, up));
  return { height: TOP + PLOT + 24, body: [text(0, 13, head, "head"), legend(lines), ...grid, ...labels, ...drawn].join("\n") };
}

function drawnLine(values: ChartLine["values"], tone: number, across: (index: number) => number, up: (value: number) => number): string {
  const points = values.flatMap((value, index) => (value === null ? [] : [{ x: coordinate(across(index)), y: coordinate(up(value)) }]));
  const dots = points.length > 24 ? [] : points.map(({ x, y }) => `<circle class="dot${tone}" cx="${x}" cy="${y}" r="3.5"/>`);
  return [`<polyline class="line tone${tone}" points="${points.map(({ x, y }) => `${x},${y}`).join(" ")}"/>`, ...dots].join("");
}

function legend(lines: readonly ChartLine[]): string {
  if (lines.length < 2) return "";
  let x = 0;
  return lines
    .map(({ name }, index) => {
      const entry = `<circle class="dot${index % TONES}" cx="${coordinate(x + 5)}" cy="28" r="4"/>${text(x + 14, 32, name, "muted")}`;
      x += name.length * 6.6 + 36;
      return entry;
    })
    .join("");
}

/** The next round number that divides well into the steps of the grid. */
export function ceiling(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return (([1, 2, 4, 6, 8, 10].find((round) => round * power >= value * 0.999) ?? 10) * power * 1e6) / 1e6;
}
