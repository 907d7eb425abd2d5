import { expect, test } from "vitest";
import { BOUNDS } from "../values/bounds.js";
import { isPawlError } from "../values/error.js";
import { cronOf } from "./cron.js";

/** `PAWL_CRON_EXPRESSIONS=1000000` tries so many, and says how far it is; a few are tried always. */
const MANY = Number(process.env.PAWL_CRON_EXPRESSIONS ?? 3_000);
const SEED = Number(process.env.PAWL_CRON_SEED ?? 1);
const NOW = Date.UTC(2026, 0, 1);
/** ms of the processor that one of them may take: what others do meanwhile is not its fault */
const PARSED = 5;
const FOUND = 10;

/** xorshift: the same expressions for the same seed. */
function dice(seed: number): (sides: number) => number {
  let state = seed >>> 0 || 1;
  return (sides) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % sides;
  };
}

const SENSE = [
  ["*", "0", "59", "*/7", "0-30", "1,2,50-59", "H"],
  ["*", "0", "23", "*/2", "9-17", "H"],
  ["*", "1", "31", "L", "1-7", "*/3", "H"],
  ["*", "1", "FEB", "2", "1-6", "*/4"],
  ["*", "0", "MON", "1-5", "5#2", "SUN", "7"],
];
const NONSENSE = ["?", "L", "W", "#", "H", "/", "-", ",", "60", "99", "x", "(", "é", "*/0", "5-1", "1".repeat(40), "*,".repeat(90), "H(1-5)"];

/** Most fields make sense, or nothing but the first one would ever be looked at. */
function expressionOf(roll: (sides: number) => number): string {
  const pick = (choices: readonly string[]) => choices[roll(choices.length)] as string;
  const odd = () => Array.from({ length: 1 + roll(5) }, () => pick(NONSENSE)).join("");
  const fields = SENSE.map((choices) => (roll(8) === 0 ? odd() : pick(choices)));
  return [...(roll(8) === 0 ? [odd()] : []), ...fields].join(" ");
}

test("S26: random cron expressions are parsed or refused by their code, and none takes long", { timeout: 0 }, () => {
  const roll = dice(SEED);
  let good = 0;
  const slow: string[] = [];
  const took = (expression: string, limit: number, work: (tries: number) => void) => {
    // One that met the collector or the compiler is not slow again.
    for (let tries = 0; tries < 3; tries++) {
      const from = process.cpuUsage();
      work(tries);
      const { user, system } = process.cpuUsage(from);
      if (user + system <= limit * 1_000) return;
    }
    slow.push(expression);
  };
  for (let n = 1; n <= MANY; n++) {
    const expression = expressionOf(roll);
    took(expression, PARSED, (tries) => {
      try {
        // Spaces, since what was parsed is remembered by its text.
        cronOf(expression + " ".repeat(tries), `${n}`);
      } catch (error) {
        if (!isPawlError(error, "cron_invalid")) throw new Error(`${JSON.stringify(expression)}: ${String(error)}`);
      }
    });
    const cron = parsed(expression);
    if (cron !== undefined) {
      good++;
      took(expression, FOUND, () => void cron.from(NOW));
    }
    if (n % 50_000 === 0) console.log(`${n} of ${MANY}, ${good} of them good`);
  }
  expect(slow).toEqual([]);
  expect(good, "some make sense").toBeGreaterThan(MANY / 10);
  expect(() => cronOf("1".repeat(BOUNDS.cron + 1), "")).toThrow(/longer/);
});

function parsed(expression: string) {
  try {
    return cronOf(expression, "s");
  } catch {
    return undefined;
  }
}
