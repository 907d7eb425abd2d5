import { Cron as Croner } from "croner";
import { BOUNDS } from "../values/bounds.js";
import { pawlError } from "../values/error.js";
import { hash32 } from "../values/hash.js";

/** A parsed cron expression: a calendar without zones. Civil times are ms as if they were UTC. */
export interface Cron {
  /** the first civil time at or after this one that it names; undefined if there is none */
  from(civil: number): number | undefined;
  /**
   * Whether it names times by steps through the day (`*` or a step as minute or hour) rather than by the clock: then
   * it follows elapsed time where clocks are changed, so that "every five minutes" stays that.
   */
  readonly elapsed: boolean;
}

const MAX_PARTS = 100;
const SECOND = 1_000;

/** What `H` may become, by field: every month has 28 days. */
const RANGES = [
  [0, 59],
  [0, 59],
  [0, 23],
  [1, 28],
  [1, 12],
  [0, 6],
] as const;
// A map: a name that every object has ("constructor") is none of them.
const NICKNAMES = new Map(
  Object.entries({
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
  }),
);

const parsed = new Map<string, Cron>();
const MAX_REMEMBERED = 5_000;

/** `seed` decides what `H` stands for: the same seed, the same times. Throws `cron_invalid`. */
export function cronOf(expression: string, seed: string): Cron {
  const key = expression.includes("H") ? `${seed}\u0001${expression}` : expression;
  let cron = parsed.get(key);
  if (cron === undefined) {
    cron = parse(expression, seed);
    if (parsed.size >= MAX_REMEMBERED) parsed.clear();
    parsed.set(key, cron);
  }
  return cron;
}

function parse(expression: string, seed: string): Cron {
  const refuse = (reason: string) => pawlError("cron_invalid", { expression, reason });
  if (expression.length > BOUNDS.cron) throw refuse(`it is longer than ${BOUNDS.cron} characters`);
  const text = NICKNAMES.get(expression.trim().toLowerCase()) ?? expression.trim();
  const parts = text.split(/\s+/);
  if (parts.length !== 5 && parts.length !== 6) throw refuse(`it has ${parts.length} fields, not five or six`);
  if (parts.some((field) => field.split(",").length > MAX_PARTS)) throw refuse(`a field has more than ${MAX_PARTS} parts`);
  const fields = parts.length === 6 ? parts : ["0", ...parts];
  // The library reads 1L as "the first, and the last".
  if (/\dL/i.test(fields[3] as string)) throw refuse("in the field of days, L stands alone");
  const plain = fields.map((field, index) => spread(field, index, seed, refuse));
  let croner: Croner;
  try {
    // Without a zone of its own: which instants a civil time means is decided in schedule.ts.
    croner = new Croner(plain.join(" "), { paused: true, utcOffset: 0 });
  } catch (error) {
    throw refuse((error as Error).message.replace(/^Cron\w*: |\.$/g, ""));
  }
  const [, minute = "", hour = ""] = fields;
  // Days that never come are looked for through centuries: once is enough.
  let over = Number.POSITIVE_INFINITY;
  return {
    elapsed: isStep(minute) || isStep(hour),
    from(civil) {
      // It answers what is after a time, in whole seconds.
      if (civil >= over) return undefined;
      const before = Math.ceil(civil / SECOND) * SECOND - SECOND;
      const found = croner.nextRun(new Date(before))?.getTime();
      if (found === undefined) over = civil;
      return found;
    },
  };
}

function isStep(field: string): boolean {
  return field.startsWith("*") || /^H(\(\d+-\d+\))?\//.test(field);
}

const HASHED = /^H(?:\((\d+)-(\d+)\))?(?:\/(\d+))?$/;

/** `H`, `H(0-29)`, `H/15`: a number of this seed's own in place of one that everybody chooses. */
function spread(field: string, index: number, seed: string, refuse: (reason: string) => Error): string {
  return field
    .split(",")
    .map((part) => {
      const match = HASHED.exec(part);
      if (match === null) return part;
      const [lowest, highest] = RANGES[index] as readonly [number, number];
      const [from, to] = [Number(match[1] ?? lowest), Number(match[2] ?? highest)];
      const step = match[3] === undefined ? undefined : Number(match[3]);
      if (from < lowest || to > highest || from > to || step === 0) throw refuse(`${part} is out of ${lowest} to ${highest}`);
      const hash = hash32(`${seed}\u0001${index}`);
      if (step === undefined) return String(from + (hash % (to - from + 1)));
      return `${from + (hash % Math.min(step, to - from + 1))}-${to}/${step}`;
    })
    .join(",");
}
