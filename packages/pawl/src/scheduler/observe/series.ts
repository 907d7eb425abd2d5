import { MINUTE_MS, NO_JOBS, pointsOf, type SeriesPoint } from "../../core/observe/series.js";
import type { Duration } from "../../core/values/duration.js";
import { checkName } from "../../core/values/name.js";
import type { Store } from "../../store/port/index.js";
import type { SeriesAnswer } from "../../store/port/observe/series.js";
import { checkInstant, checkKeys, checkObject, checkOneOf, checkPeriod, invalid } from "../check.js";
import type { Instant } from "../schedules/schedule.js";

export interface SeriesOptions {
  readonly queue?: string;
  readonly task?: string;
  /** one series for each queue or task, the busiest 100 of them; left out: one of all */
  readonly by?: "queue" | "task";
  /** how far back from `to`; an hour unless set. Not together with `from` */
  readonly last?: Duration;
  readonly from?: Instant;
  /** up to then; left out: now */
  readonly to?: Instant;
  /** length of one step, in whole minutes; a minute unless set */
  readonly step?: Duration;
}

/** What happened over time: points from `from` to `to`, one per step. */
export interface SeriesView {
  readonly from: Date;
  readonly to: Date;
  /** ms */
  readonly step: number;
  readonly series: readonly GroupSeries[];
}

export interface SeriesPointView extends SeriesPoint {
  /** when the step began */
  readonly at: Date;
}

export interface GroupSeries {
  readonly queue?: string;
  readonly task?: string;
  readonly points: readonly SeriesPointView[];
}

const KEYS: ReadonlySet<string> = new Set(["queue", "task", "by", "last", "from", "to", "step"] satisfies readonly (keyof SeriesOptions)[]);
const MAX_POINTS = 1_500;
const MAX_SERIES = 100;
const DEFAULT_RANGE_MS = 60 * MINUTE_MS;

/** What it is asked, checked and in ms: the same for a store here and a service far away. */
export function checkSeries(of: SeriesOptions) {
  checkKeys(checkObject("of", of), KEYS, "of.");
  const step = checkPeriod("of.step", of.step ?? MINUTE_MS);
  if (step % MINUTE_MS !== 0) throw invalid("of.step", "it is not a number of whole minutes");
  if (of.last !== undefined && of.from !== undefined) throw invalid("of.last", "give either last or from");
  const from = of.from === undefined ? undefined : checkInstant("of.from", of.from);
  const to = of.to === undefined ? undefined : checkInstant("of.to", of.to);
  if (from !== undefined && to !== undefined && from >= to) throw invalid("of.from", "it is not before of.to");
  const last = checkPeriod("of.last", of.last ?? DEFAULT_RANGE_MS);
  if (last / step > MAX_POINTS) throw tooMany();
  return {
    last,
    step,
    ...(of.by === undefined ? {} : { by: checkOneOf("of.by", of.by, ["queue", "task"]) }),
    ...(of.queue === undefined ? {} : { queue: checkName("queue", of.queue) }),
    ...(of.task === undefined ? {} : { task: checkName("task", of.task) }),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
  };
}

export async function seriesOf(store: Store, of: SeriesOptions = {}): Promise<SeriesView> {
  const { step, ...query } = checkSeries(of);
  const answer = await store.series.read({ ...query, step: step / MINUTE_MS, limit: MAX_SERIES });
  if (answer.last - answer.first >= MAX_POINTS) throw tooMany();
  return { from: new Date(answer.first * step), to: new Date((answer.last + 1) * step), step, series: groupSeriesOf(answer, step, query) };
}

function groupSeriesOf(
  { first, last, series }: SeriesAnswer,
  step: number,
  { by, ...of }: Pick<SeriesOptions, "by" | "queue" | "task">,
): readonly GroupSeries[] {
  const query = { ...(of.queue === undefined ? {} : { queue: of.queue }), ...(of.task === undefined ? {} : { task: of.task }) };
  const some = series.length === 0 && by === undefined ? [{ sums: [], now: NO_JOBS }] : series;
  return some.map((one) => ({
    ...query,
    ...(by === undefined ? {} : { [by]: (one as { name?: string }).name }),
    points: pointsOf(first, last, one.sums, one.now).map((point, index) => ({ at: new Date((first + index) * step), ...point })),
  }));
}

function tooMany() {
  return invalid("of.step", `that makes more than ${MAX_POINTS} steps: make it longer, or ask for less time`);
}
