import type { Duration } from "../core/duration.js";
import { checkName } from "../core/name.js";
import { MINUTE, NOBODY, pointsOf, type SeriesPoint } from "../core/series.js";
import type { Store } from "../store/port.js";
import type { SeriesAnswer } from "../store/port-series.js";
import { checkInstant, checkKeys, checkObject, checkOneOf, checkPeriod, invalid } from "./check.js";
import type { Instant } from "./schedule.js";

export interface SeriesOf {
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
  readonly series: readonly OneSeries[];
}

export interface SeriesPointView extends SeriesPoint {
  /** when the step began */
  readonly at: Date;
}

export interface OneSeries {
  readonly queue?: string;
  readonly task?: string;
  readonly points: readonly SeriesPointView[];
}

const KEYS: ReadonlySet<string> = new Set(["queue", "task", "by", "last", "from", "to", "step"] satisfies readonly (keyof SeriesOf)[]);
const MOST_POINTS = 1_500;
const MOST_SERIES = 100;
const LAST = 60 * MINUTE;

/** What it is asked, checked and in ms: the same for a store here and a service far away. */
export function checkSeries(of: SeriesOf) {
  checkKeys(checkObject("of", of), KEYS, "of.");
  const step = checkPeriod("of.step", of.step ?? MINUTE);
  if (step % MINUTE !== 0) throw invalid("of.step", "it is not a number of whole minutes");
  if (of.last !== undefined && of.from !== undefined) throw invalid("of.last", "give either last or from");
  const from = of.from === undefined ? undefined : checkInstant("of.from", of.from);
  const to = of.to === undefined ? undefined : checkInstant("of.to", of.to);
  if (from !== undefined && to !== undefined && from >= to) throw invalid("of.from", "it is not before of.to");
  const last = checkPeriod("of.last", of.last ?? LAST);
  if (last / step > MOST_POINTS) throw tooMany();
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

export async function seriesOf(store: Store, of: SeriesOf = {}): Promise<SeriesView> {
  const { step, ...asked } = checkSeries(of);
  const answer = await store.series.read({ ...asked, step: step / MINUTE, limit: MOST_SERIES });
  if (answer.last - answer.first >= MOST_POINTS) throw tooMany();
  return { from: new Date(answer.first * step), to: new Date((answer.last + 1) * step), step, series: oneByOne(answer, step, asked) };
}

function oneByOne({ first, last, series }: SeriesAnswer, step: number, { by, ...of }: Pick<SeriesOf, "by" | "queue" | "task">): readonly OneSeries[] {
  const asked = { ...(of.queue === undefined ? {} : { queue: of.queue }), ...(of.task === undefined ? {} : { task: of.task }) };
  const some = series.length === 0 && by === undefined ? [{ sums: [], now: NOBODY }] : series;
  return some.map((one) => ({
    ...asked,
    ...(by === undefined ? {} : { [by]: (one as { name?: string }).name }),
    points: pointsOf(first, last, one.sums, one.now).map((point, place) => ({ at: new Date((first + place) * step), ...point })),
  }));
}

function tooMany() {
  return invalid("of.step", `that makes more than ${MOST_POINTS} steps: make it longer, or ask for less time`);
}
