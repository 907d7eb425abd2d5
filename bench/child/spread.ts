import { createHistogram, type RecordableHistogram } from "node:perf_hooks";
import type { Spread } from "../contract/system.ts";

/** Times in ms, kept as a histogram of µs: flat in memory, exact to a thousandth. */
export class Times {
  #histogram: RecordableHistogram = createHistogram();

  add(ms: number): void {
    this.#histogram.record(Math.max(1, Math.round(ms * 1_000)));
  }

  spread(): Spread {
    const { count, max, mean } = this.#histogram;
    if (count === 0) return { count: 0, p50: 0, p90: 0, p99: 0, p999: 0, max: 0, mean: 0 };
    const at = (percentile: number) => this.#histogram.percentile(percentile) / 1_000;
    return { count, p50: at(50), p90: at(90), p99: at(99), p999: at(99.9), max: max / 1_000, mean: mean / 1_000 };
  }
}
