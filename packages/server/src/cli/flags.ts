import type { Command } from "commander";
import { checkInstant, checkPace, checkRate, milliseconds } from "pawl/service";
import { usage } from "./exit.js";

/** Reads values of flags. Each answers with the value, or says which flag is wrong and how it is written. */

export function whole(flag: string, text: string, min = 1, max = Number.MAX_SAFE_INTEGER): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw usage(`${flag}: ${text} is not a whole number from ${min} to ${max.toLocaleString("en")}`);
}

/** An instant, or a time before now: "2026-11-15T12:00Z", "1h". */
export function instant(flag: string, text: string, now = Date.now()): Date {
  if (/^\d+(\.\d+)?(ms|s|m|h|d|w)/.test(text)) return new Date(now - period(flag, text));
  try {
    return new Date(checkInstant(flag, text));
  } catch {
    throw usage(`${flag}: ${text} is neither an instant with an offset nor a time ago`, `write ${flag} 2026-11-15T12:00Z or ${flag} 1h`);
  }
}

/** in ms */
export function period(flag: string, text: string): number {
  try {
    return milliseconds(text);
  } catch {
    throw usage(`${flag}: ${text} is not a time`, `write ${flag} 250ms, 30s, 5m, 24h or 7d`);
  }
}

/** "10/s", "100/1m": so many per time */
export function rate(flag: string, text: string): { readonly limit: number; readonly per: number } {
  try {
    const { limit, per } = checkRate(flag, text);
    return { limit, per };
  } catch {
    throw usage(`${flag}: ${text} is not a rate`, `write ${flag} 10/s or ${flag} 100/5m`);
  }
}

/** ms between two of many: "100ms", or a rate such as "10/s" */
export function pace(flag: string, text: string): number {
  try {
    return checkPace(flag, text);
  } catch {
    throw usage(`${flag}: ${text} is neither a time nor a rate`, `write ${flag} 100ms, ${flag} 10/s or ${flag} 100/5m`);
  }
}

/** JSON, as it stands on a command line or in a file. */
export function json(what: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usage(`${what} is not JSON: ${(error as Error).message}`, `quote it for the shell: '{"to":"ana"}', or give a text as '"ana"'`);
  }
}

/** Gathers what an option that may be repeated is given. */
export function gather(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** The page that `--limit` and `--cursor` ask for. */
export function pageOf({ limit, cursor }: PageFlags): { readonly limit: number; readonly cursor?: string } {
  return { limit: whole("--limit", limit, 1, 1_000), ...(cursor === undefined ? {} : { cursor }) };
}

export interface PageFlags {
  readonly limit: string;
  readonly cursor?: string;
}

/** Gives the command of a list the flags of its pages. */
export function withPages(command: Command, size = "50"): Command {
  return command.option("-n, --limit <count>", "items of a page", size).option("--cursor <cursor>", "the page after the one that printed this");
}
