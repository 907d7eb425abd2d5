import type { Curve, Scenario } from "../../contract/scenario.js";
import { median, rounded } from "../../harness/figures.js";

const MB = 2 ** 20;
const WARM_UP = 500_000;

interface Tenth {
  readonly µs: number;
  readonly rssMB: number;
}

export const fanout: Scenario = {
  name: "fanout",
  measures: "jobs enqueued from an async iterable by enqueueStream, tenth by tenth: time per job, and RSS of the process",
  systems: ["pawl"],
  jobs: 1_000_000,
  runs: 3,
  async run(bench) {
    const streams: (readonly Tenth[])[] = [];
    const samples = await bench.turns(async (turn) => {
      const producer = await turn.start();
      // Else the start would be slow for being the start, and the end look good beside it; and the heap takes its size first.
      const warmUp = Math.min(WARM_UP, bench.jobs);
      await producer.enqueueStream({ count: warmUp });
      const { ms, tenths } = await producer.enqueueStream({ count: bench.jobs });
      const { peakRssBytes } = await producer.usage();
      await producer.stop();
      const { unfinished } = await turn.inspect.counts();
      if (unfinished !== warmUp + bench.jobs) throw new Error(`${unfinished} of ${warmUp + bench.jobs} jobs were stored`);
      streams.push(
        tenths.map((tenth, index) => ({
          µs: ((tenth.ms - (tenths[index - 1]?.ms ?? 0)) / (bench.jobs / 10)) * 1_000,
          rssMB: tenth.rssBytes / MB,
        })),
      );
      return { perSecond: (bench.jobs / ms) * 1_000, peakRssMB: peakRssBytes / MB };
    });
    const tenths = mediansOf(streams);
    const [first, last] = [tenths[0], tenths.at(-1)];
    const results = tenths.map(({ µs, rssMB }, index) => ({
      system: "pawl",
      case: `tenth ${index + 1}`,
      perSecond: rounded(1e6 / µs),
      rssMB: rounded(rssMB),
    }));
    if (first === undefined || last === undefined) return { results, ratio: null, parts: {} };
    const peakRssMB = Math.max(...(samples.get("pawl") ?? []).map((sample) => sample.peakRssMB));
    return {
      results,
      ratio: null,
      parts: { slowdown: rounded(last.µs / first.µs), rssGrowth: rounded(last.rssMB / first.rssMB), peakRssMB: rounded(peakRssMB) },
      curves: curves(tenths),
    };
  },
};

/** Tenth by tenth, over the repetitions. */
function mediansOf(streams: readonly (readonly Tenth[])[]): readonly Tenth[] {
  return (streams[0] ?? []).map((_, index) => {
    const of = (figure: keyof Tenth) => median(streams.flatMap((tenths) => tenths[index]?.[figure] ?? []));
    return { µs: of("µs"), rssMB: of("rssMB") };
  });
}

function curves(tenths: readonly Tenth[]): readonly Curve[] {
  const stops = tenths.map((_, index) => String(index + 1));
  return [
    { head: "time per job, by tenth", stops, unit: " µs", lines: [{ name: "pawl", values: tenths.map(({ µs }) => rounded(µs)) }] },
    {
      head: "RSS of the enqueueing process, by tenth",
      stops,
      unit: " MB",
      lines: [{ name: "pawl", values: tenths.map(({ rssMB }) => rounded(rssMB)) }],
    },
  ];
}
