import type { BreakerRule } from "./breaker.js";
import { DEFAULTS } from "./defaults.js";
import type { Duration } from "./duration.js";
import { checkKeys, checkObject, checkPeriod, checkWhole, invalid, show } from "./option.js";

/** Of a task: when its breakers open and when they try again. */
export interface BreakerOptions {
  /** the share of failures at which it opens, above 0 and up to 1 */
  readonly failures?: number;
  /** over how long they are counted */
  readonly window?: Duration;
  /** outcomes in that time below which it never opens */
  readonly minimum?: number;
  /** how long after it opened, and after a probe, one job is let through */
  readonly probe?: Duration;
}

const KEYS: ReadonlySet<string> = new Set(["failures", "window", "minimum", "probe"] satisfies (keyof BreakerOptions)[]);
/** ms; shorter and the parts of the window are shorter than the time between reports */
const SHORTEST_WINDOW = 10_000;
const SHORTEST_PROBE = 100;

/** The rule that was meant; undefined: no breaker at all. */
export function breakerRule(option: string, given: false | BreakerOptions | undefined): BreakerRule | undefined {
  if (given === false) return undefined;
  const asked = given === undefined ? {} : (checkObject(option, given) as BreakerOptions);
  checkKeys(asked, KEYS, `${option}.`);
  const { failures, window, minimum, probe } = asked;
  return {
    failures: failures === undefined ? DEFAULTS.breaker.failures : checkShare(`${option}.failures`, failures),
    window: window === undefined ? DEFAULTS.breaker.window : checkAtLeast(`${option}.window`, window, SHORTEST_WINDOW),
    minimum: minimum === undefined ? DEFAULTS.breaker.minimum : checkWhole(`${option}.minimum`, minimum, 1, 1_000_000),
    probe: probe === undefined ? DEFAULTS.breaker.probe : checkAtLeast(`${option}.probe`, probe, SHORTEST_PROBE),
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
