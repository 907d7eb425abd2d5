import { isOurs } from "../harness/figures.js";
import { barPanel } from "./bar-panel.js";
import { formatted } from "./figures.js";
import { linePanel } from "./line-panel.js";
import { machineText } from "./machine.js";
import type { SavedReport } from "./report.js";
import { card, type Piece } from "./svg.js";
import { circumstances } from "./table.js";

interface Chart {
  readonly title: string;
  /** figure → its heading */
  readonly figures?: Readonly<Record<string, string>>;
}

/** What a scenario's chart shows. Those without figures show their rate. */
const CHARTS: Readonly<Record<string, Chart>> = {
  enqueue: {
    title: "Jobs enqueued per second",
    figures: { perSecond: "in bulk", inFlight64PerSecond: "single ones, 64 in flight", singlePerSecond: "single ones, awaited one by one" },
  },
  drain: { title: "Jobs run per second", figures: { perSecond: "no-op handlers, history kept, one worker process" } },
  sustained: { title: "Jobs per second, enqueueing and running at once" },
  latency: { title: "From enqueue to the start of the handler", figures: { p50Ms: "p50", p99Ms: "p99" } },
  lateness: { title: "How late delayed jobs start", figures: { p50Ms: "p50", p99Ms: "p99" } },
  herd: { title: "How late jobs start when 10,000 are due every second", figures: { p50Ms: "p50", p99Ms: "p99", p999Ms: "p99.9" } },
  schedules: {
    title: "How late the jobs of schedules start",
    figures: { p50Ms: "p50", p99Ms: "p99", cpuPer100kSeconds: "CPU of 100,000 ticks and their jobs" },
  },
  backlog: { title: "What a backlog costs", figures: { perSecond: "jobs run per second", claimP99Ms: "one claim, p99" } },
  fanout: { title: "Enqueueing from an endless source" },
  pinned: {
    title: "While another transaction holds an old snapshot",
    figures: { perSecond: "jobs run per second", afterPerSecond: "after a million more", unpinnedPerSecond: "with no such transaction" },
  },
  fairness: { title: "Each tenant's share of worker time" },
  newcomers: { title: "How long a small tenant waits beside a large one", figures: { p50Ms: "p50", p99Ms: "p99", maxMs: "longest" } },
  limits: { title: "What limits cost the rest" },
  telemetry: { title: "What being watched costs" },
  service: { title: "Over HTTP", figures: { bulkPerSecond: "jobs enqueued per second", perSecond: "jobs run per second" } },
  tenants: { title: "Tenants, half of all jobs in one of them" },
  embedded: { title: "The embedded store, started from nothing" },
  cost: {
    title: "What one job costs",
    figures: { walKB: "log written", diskKB: "disk", cpuPer100kSeconds: "CPU of 100,000 jobs, client and server" },
  },
  workers: { title: "Worker processes on the same queue" },
  idle: { title: "An idle worker", figures: { queriesPerSecond: "queries per second" } },
};

const RATE: NonNullable<Chart["figures"]> = { perSecond: "jobs run per second" };

/** The chart of one scenario; undefined if it has nothing to draw. */
export function chartOf(report: SavedReport): string | undefined {
  const { title, figures = RATE }: Chart = CHARTS[report.scenario] ?? { title: report.scenario };
  const bars = (report.curves ?? []).length > 0 ? [] : Object.entries(figures).flatMap(([figure, head]) => barsOf(report, figure, head));
  const curves = (report.curves ?? []).map(linePanel);
  const pieces = [...bars, ...curves];
  return pieces.length === 0 ? undefined : card(title, pieces, `${circumstances(report)} · ${footnote(report)}`);
}

/** The README's one chart: how fast jobs go in and are run, beside the peers. */
export function summaryOf(reports: readonly SavedReport[]): string | undefined {
  const of = (scenario: string) => reports.find((report) => report.scenario === scenario);
  const [drain, enqueue] = [of("drain"), of("enqueue")];
  const pieces = [
    ...(drain === undefined ? [] : barsOf(drain, "perSecond", "run (no-op handlers, history kept, one worker process)")),
    ...(enqueue === undefined ? [] : barsOf(enqueue, "perSecond", "enqueued (in bulk)")),
  ];
  const source = drain ?? enqueue;
  return source === undefined || pieces.length === 0 ? undefined : card("Jobs per second", pieces, footnote(source));
}

function footnote({ machine, servers, date }: SavedReport): string {
  const node = servers.node?.split(",")[0];
  return [machineText(machine), ...(node === undefined ? [] : [`Node ${node}`]), date.slice(0, 10)].join(" · ");
}

/** The best one first, unless the scenario has cases, which have an order of their own. */
function barsOf({ results, systems }: SavedReport, figure: string, head: string): readonly Piece[] {
  const labels = new Map(systems.map(({ name, label }) => [name, label]));
  const alone = new Set(results.map(({ system }) => system)).size === 1;
  const rows = results.flatMap((result) => {
    const value = result[figure];
    if (typeof value !== "number" || !Number.isFinite(value)) return [];
    const system = labels.get(result.system) ?? result.system;
    const label = result.case === undefined ? system : alone ? result.case : `${system}, ${result.case}`;
    return [{ label, value, caption: formatted(figure, value), ours: isOurs(result.system) }];
  });
  const fastIsBest = /perSecond$/i.test(figure) && figure !== "queriesPerSecond";
  const sorted = results.some((result) => result.case !== undefined)
    ? rows
    : rows.toSorted((a, b) => (fastIsBest ? b.value - a.value : a.value - b.value));
  return sorted.length === 0 ? [] : [barPanel(head, sorted)];
}
