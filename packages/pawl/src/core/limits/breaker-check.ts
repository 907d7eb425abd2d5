import { DEFAULTS } from "../values/defaults.js";
import type { Duration } from "../values/duration.js";
import { checkKeys, checkObject, checkPeriod, checkWhole, invalid, show } from "../values/option.js";
import type { BreakerRule } from "./breaker.js";

/** Of a task: when its breakers open and when they try again. */
export interface BreakerOptions {
  /** the share of failures at which it opens, above 0 and up to 1 */
  readonly failureRate?: number;
  /** over how long they are counted */
  readonly window?: Duration;
  /** outcomes in that time below which it never opens */
  readonly minOutcomes?: number;
  /** how long after it opened, and after a probe, one job is let through */
  readonly probeInterval?: Duration;
}

const KEYS: ReadonlySet<string> = new Set(["failureRate", "window", "minOutcomes", "probeInterval"] satisfies (keyof BreakerOptions)[]);
/** ms; shorter and the parts of the window are shorter than the time between reports */
const SHORTEST_WINDOW_MS = 10_000;
const SHORTEST_PROBE = 100;

/** The rule that was meant; undefined: no breaker at all. */
export function breakerRule(option: string, value: false | BreakerOptions | undefined): BreakerRule | undefined {
  if (value === false) return undefined;
  const options = value === undefined ? {} : (checkObject(option, value) as BreakerOptions);
  checkKeys(options, KEYS, `${option}.`);
  const { failureRate, window, minOutcomes, probeInterval } = options;
  return {
    failureRate: failureRate === undefined ? DEFAULTS.breaker.failureRate : checkShare(`${option}.failureRate`, failureRate),
    window: window === undefined ? DEFAULTS.breaker.window : checkAtLeast(`${option}.window`, window, SHORTEST_WINDOW_MS),
    minOutcomes: minOutcomes === undefined ? DEFAULTS.breaker.minOutcomes : checkWhole(`${option}.minOutcomes`, minOutcomes, 1, 1_000_000),
    probeInterval:
      probeInterval === undefined ? DEFAULTS.breaker.probeInterval : checkAtLeast(`${option}.probeInterval`, probeInterval, SHORTEST_PROBE),
  };
}

function checkShare(option: string, value: unknown): number {
  if (typeof value === "number" && value > 0 && value <= 1) return value;
  throw invalid(option, `${show(value)} is not a share above 0 and up to 1`);
}

function checkAtLeast(option: string, value: unknown, least: number): number {
  const ms = checkPeriod(option, value);
  if (ms < least) throw invalid(option, `it is shorter than ${least} ms`);
  return ms;
}
