import { type Duration, milliseconds } from "../values/duration.js";
import { checkDuration, checkKeys, checkObject, checkPeriod, checkWhole, invalid, show } from "../values/option.js";

/** So many per period, and so many at once after a rest. */
export interface RateOptions {
  readonly limit: number;
  readonly per: Duration;
  /** the most at once; absent: `limit` */
  readonly burst?: number;
}

/** The same in stored form. ms */
export interface Rate {
  readonly limit: number;
  readonly per: number;
  readonly burst: number;
}

const MAX_TOKENS = 1_000_000_000;
const RATE_KEYS: ReadonlySet<string> = new Set(["limit", "per", "burst"] satisfies readonly (keyof RateOptions)[]);

/** A rate as an object, or as a text such as "10/s" or "100/5m". */
export function checkRate(option: string, value: unknown): Rate {
  if (typeof value === "string") return rateOf(option, value);
  const options = checkObject(option, value) as Partial<RateOptions>;
  checkKeys(options, RATE_KEYS, `${option}.`);
  const limit = checkWhole(`${option}.limit`, options.limit, 1, MAX_TOKENS);
  return {
    limit,
    per: checkPeriod(`${option}.per`, options.per),
    burst: options.burst === undefined ? limit : checkWhole(`${option}.burst`, options.burst, 1, MAX_TOKENS),
  };
}

/**
 * ms between two: a duration, or a rate such as "50/s". Not rounded, since 3,000 a second are a third of a ms apart: round the
 * time of each.
 */
export function checkPace(option: string, value: unknown): number {
  if (typeof value !== "string" || !value.includes("/")) return checkDuration(option, value);
  const { limit, per } = rateOf(option, value);
  return per / limit;
}

const RATE_TEXT = /^(\d{1,10})\/((?:\d|[a-z]).*)$/;

function rateOf(option: string, text: string): Rate {
  const [, limitText, perText] = RATE_TEXT.exec(text) ?? [];
  const limit = Number(limitText);
  const per = perText === undefined ? 0 : periodOf(perText);
  if (!(limit >= 1 && limit <= MAX_TOKENS) || per === 0) throw invalid(option, `${show(text)} is not a rate, such as "10/s" or "100/5m"`);
  return { limit, per, burst: limit };
}

/** in ms; 0 if the text is no period. A unit alone is one of it. */
function periodOf(text: string): number {
  try {
    return milliseconds(/^\d/.test(text) ? text : `1${text}`);
  } catch {
    return 0;
  }
}

/**
 * A token bucket kept as one instant (GCRA): `tat` is when the bucket will be full again, undefined or past while it is.
 * Over any time w at most `burst + w × limit / per` tokens are spent, by whoever asks `tokens` before each `spend`.
 */

/** Whole tokens that may be spent now. */
export function tokens(rate: Rate, tat: number | undefined, now: number): number {
  const whole = Math.floor(rate.burst - (debt(tat, now) - ROUNDING) / interval(rate));
  return Math.min(rate.burst, Math.max(0, whole));
}

/** The bucket after so many were spent. To the microsecond, as stores keep it, and rounded up: what is lost on the way would let more go. */
export function spend({ limit, per }: Rate, tat: number | undefined, now: number, count: number): number {
  const from = Math.round(Math.max(tat ?? now, now) * 1_000);
  return (from + Math.ceil((count * per * 1_000) / limit)) / 1_000;
}

/** ms until so many may be spent; 0: now. Never for more than the burst. */
export function tokensIn(rate: Rate, tat: number | undefined, now: number, count: number): number {
  if (count > rate.burst) return Number.POSITIVE_INFINITY;
  const wait = debt(tat, now) - (rate.burst - count) * interval(rate);
  return wait <= ROUNDING ? 0 : wait;
}

/** A microsecond, in ms. What is that near is now: instants of this century, as numbers of ms, are told to a quarter of it. */
const ROUNDING = 1e-3;

function interval({ limit, per }: Rate): number {
  return per / limit;
}

/** ms until it is full */
function debt(tat: number | undefined, now: number): number {
  return Math.max(0, (tat ?? now) - now);
}
