import type { Command } from "commander";
import type { GroupSeries, SeriesOptions, SeriesPointView, SeriesView } from "pawl/service";
import { bars } from "../../terminal/bars.js";
import { usage } from "../exit.js";
import { instant, period } from "../flags.js";
import type { Act, CommandSession } from "../session.js";
import type { Cell, CellStyle } from "../table.js";
import { duration, plural, timestamp } from "../text.js";

interface SeriesFlags {
  readonly queue?: string;
  readonly task?: string;
  readonly by?: string;
  readonly last?: string;
  readonly from?: string;
  readonly to?: string;
  readonly step?: string;
}

export function build(command: Command, act: Act): void {
  const show = command
    .command("show")
    .description("what happened over time, and what stood then: a line of bars each")
    .option("--queue <queue>", "of this queue only")
    .option("--task <task>", "of this task only")
    .option("--by <queue|task>", "one series for each, the busiest first")
    .option("--last <time>", "how far back; 1h unless set")
    .option("--from <time>", "since then: a date, or a time ago")
    .option("--to <time>", "up to then: a date, or a time ago")
    .option("--step <time>", "length of a step, in whole minutes; about 60 steps unless set");
  act<SeriesFlags>(show, showSeries);
}

async function showSeries({ out, pawl }: CommandSession, flags: SeriesFlags): Promise<void> {
  const of = seriesQuery(flags);
  const view = await (await pawl()).series(of);
  out.answer(view, () => {
    if (out.terminal) for (const one of view.series) draw(out, view, one);
    else out.table(HEADINGS, rowsOf(view));
    if (view.series.length === 0) out.note("nothing happened");
  });
}

const MINUTE_MS = 60_000;
/** Steps that fit on a line. */
const STEPS_ON_A_LINE = 60;

function seriesQuery({ queue, task, by, last, from, to, step }: SeriesFlags): SeriesOptions {
  if (by !== undefined && by !== "queue" && by !== "task") throw usage(`--by: ${by} is neither queue nor task`);
  if (last !== undefined && from !== undefined) throw usage("--last and --from say the same", "give one of them");
  const until = to === undefined ? undefined : instant("--to", to);
  const since = from === undefined ? undefined : instant("--from", from);
  const length = since === undefined ? period("--last", last ?? "1h") : (until?.getTime() ?? Date.now()) - since.getTime();
  const fitting = Math.max(1, Math.ceil(length / STEPS_ON_A_LINE / MINUTE_MS)) * MINUTE_MS;
  return {
    step: step === undefined ? fitting : period("--step", step),
    ...(since === undefined ? { last: length } : { from: since }),
    ...(until === undefined ? {} : { to: until }),
    ...(by === undefined ? {} : { by }),
    ...(queue === undefined ? {} : { queue }),
    ...(task === undefined ? {} : { task }),
  };
}

const EVENT_COUNTS = ["enqueued", "started", "succeeded", "retried", "died", "cancelled"] as const;
const STATE_COUNTS = ["ready", "running", "scheduled", "parked", "blocked", "dead"] as const;
const HEADINGS = ["at", "queue", "task", ...EVENT_COUNTS, ...STATE_COUNTS];
const STYLES: Readonly<Partial<Record<string, CellStyle>>> = { succeeded: "green", retried: "yellow", died: "red", dead: "red" };

/** For scripts: a row per series and step. */
function rowsOf({ series }: SeriesView): readonly (readonly Cell[])[] {
  return series.flatMap(({ queue, task, points }) =>
    points.map((point): readonly Cell[] => [
      timestamp(point.at),
      queue ?? "",
      task ?? "",
      ...EVENT_COUNTS.map((name) => point[name]),
      ...STATE_COUNTS.map((state) => point.states[state]),
    ]),
  );
}

/** For people: bars, with how many there were in all, or are now. What there was none of is left out. */
function draw(out: CommandSession["out"], { from, to, step }: SeriesView, { queue, task, points }: GroupSeries): void {
  const whose = [queue === undefined ? "" : `queue ${queue}`, task === undefined ? "" : `task ${task}`].filter((text) => text !== "").join(", ");
  out.line(
    { text: whose === "" ? "all jobs" : whose, style: "bold" },
    { text: `  ${timestamp(from)} to ${timestamp(to)}, ${plural(points.length, "step")} of ${duration(step)}`, style: "dim" },
  );
  const lines = [
    ...EVENT_COUNTS.map((name) =>
      line(
        points,
        name,
        (point) => point[name],
        (values) => values.reduce((sum, value) => sum + value, 0),
      ),
    ),
    ...STATE_COUNTS.map((state) =>
      line(
        points,
        state,
        (point) => point.states[state],
        (values) => values.at(-1) ?? 0,
      ),
    ),
  ].filter((drawn) => drawn !== undefined);
  for (const drawn of lines) out.line(...drawn);
  if (lines.length === 0) out.line({ text: "  nothing happened", style: "dim" });
}

function line(
  points: readonly SeriesPointView[],
  name: string,
  of: (point: SeriesPointView) => number,
  totalOf: (values: readonly number[]) => number,
): readonly Cell[] | undefined {
  const values = points.map(of);
  if (values.every((value) => value === 0)) return undefined;
  const drawn = bars(values);
  const style = STYLES[name];
  return [
    { text: `  ${name.padEnd(10)}`, style: "dim" },
    style === undefined ? drawn : { text: drawn, style },
    `  ${totalOf(values).toLocaleString("en")}`,
  ];
}
