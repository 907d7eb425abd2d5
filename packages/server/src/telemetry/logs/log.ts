import type { Events, Pawl, PawlError } from "pawl";
import { type EventName, pawlError } from "pawl/service";
import picocolors from "picocolors";
import pino from "pino";
import type { RequestFacts } from "../../http/request/request-facts.js";
import { BufferedLines } from "./buffered-lines.js";
import { EVENT_PHRASES, type EventPhrase, isBelowLevel, LEVELS, type Level } from "./event-phrases.js";
import { levelOf, REQUEST_EVENT, REQUEST_TEXT_FIELDS, requestLine } from "./request-line.js";
import { safeText } from "./safe-text.js";
import { ThrottledLines } from "./throttled-lines.js";

export interface LogOptions {
  /** the least that is logged (default: info) */
  readonly level?: Level | "silent";
  /** lines for people, or JSON for machines (default: lines in a terminal) */
  readonly format?: "json" | "lines";
  /** takes lines, their ends included, those of requests many at a time (default: standard output) */
  readonly write?: (line: string) => void;
}

/** A log: what a service has to say itself, in the same lines as what happens in its pawl. */
export interface Log extends Readonly<Record<Level, (text: string, fields?: Readonly<Record<string, unknown>>) => void>> {
  /** Writes down one request, within a moment: see `ServiceEnvironment.onRequest`. */
  request(facts: RequestFacts): void;
  /** Writes at once what is held back to be written together. */
  flush(): void;
  /** Writes down what happens in a pawl, until the answer is called. */
  follow(pawl: Pick<Pawl, "on">): () => void;
}

export function logTo(options: LogOptions = {}): Log {
  const { level, format, write } = checkOptions(options);
  const formatted = (json: string) => (format === "json" ? json : humanLine(json, write === undefined));
  const lines = new BufferedLines(write ?? ((text) => void process.stdout.write(text)));
  const logger = pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (label) => ({ level: label }) }, redact: REDACTED_FIELDS },
    { write: (line: string) => lines.write(formatted(line)) },
  );
  const throttled = new ThrottledLines(() => performance.now());
  const logLine = (event: string | undefined, line: Omit<EventPhrase, "subject">) => {
    if (!logger.isLevelEnabled(line.level)) return;
    const suppressed = line.class === undefined ? 0 : throttled.admit(line.class);
    if (suppressed === undefined) return;
    const about = {
      ...(event === undefined ? {} : { event }),
      ...(cleanFields(line.fields ?? {}) as object),
      ...(suppressed === 0 ? {} : { left_out: suppressed }),
    };
    logger[line.level](about, safeText(line.text));
  };
  const own = (of: Level) => (text: string, fields?: Readonly<Record<string, unknown>>) =>
    logLine(undefined, { level: of, text, ...(fields === undefined ? {} : { fields }) });
  return {
    debug: own("debug"),
    info: own("info"),
    warn: own("warn"),
    error: own("error"),
    request: (facts) => {
      if (logger.isLevelEnabled(levelOf(facts))) lines.buffer(formatted(requestLine(facts)));
    },
    flush: () => lines.flush(),
    follow: (pawl) => follow(pawl, level, logLine),
  };
}

/** Listens only for what would be written: events that nobody hears are not even made. */
function follow(pawl: Pick<Pawl, "on">, level: Level | "silent", logLine: (event: string, line: Omit<EventPhrase, "subject">) => void): () => void {
  if (level === "silent") return () => {};
  const listen = <E extends EventName>(name: E): (() => void)[] => {
    const phrases = EVENT_PHRASES[name];
    if (phrases === null || LEVELS.indexOf(phrases.maxLevel) < LEVELS.indexOf(level)) return [];
    return [
      pawl.on(name, (event) => {
        if (name === "attempt.settled" && isBelowLevel(event as Events["attempt.settled"], level)) return;
        const phrase = phrases.phrase(event);
        if (phrase !== undefined) logLine(name, { ...phrase, text: `${phrase.subject}: ${phrase.text}` });
      }),
    ];
  };
  const stops = (Object.keys(EVENT_PHRASES) as EventName[]).flatMap((name) => listen(name));
  return () => {
    for (const stop of stops) stop();
  };
}

/** Whatever hands them in: these are never written. */
const SECRET_FIELDS = ["authorization", "cookie", "password", "secret", "token", "key", "apiKey", "input", "output"];
const REDACTED_FIELDS = { paths: SECRET_FIELDS.flatMap((name) => [name, `*.${name}`]), censor: "[hidden]" };

/** Names and messages in fields come from others as much as those in the text. */
function cleanFields(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return safeText(value);
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth > 4) return "…";
  if (Array.isArray(value)) return value.map((one) => cleanFields(one, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [safeText(name), cleanFields(one, depth + 1)]));
}

const COLOURS: Readonly<Record<Level, (text: string) => string>> = {
  debug: picocolors.dim,
  info: picocolors.cyan,
  warn: picocolors.yellow,
  error: picocolors.red,
};

/** 12:00:00 WARN  text  name=value … */
function humanLine(json: string, coloured: boolean): string {
  const { level, time, msg, event, ...fields } = JSON.parse(json) as { level: Level; time: string; msg: string; event?: string };
  const word = level.toUpperCase().padEnd(5);
  const phrase = event === REQUEST_EVENT ? REQUEST_TEXT_FIELDS : [];
  const fieldsShown = Object.entries(fields).filter(([name]) => !phrase.includes(name));
  const more = fieldsShown.map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  return `${time.slice(11, 19)} ${coloured ? COLOURS[level](word) : word} ${[msg, ...more].join("  ")}\n`;
}

function checkOptions({ level = "info", format, write, ...rest }: LogOptions) {
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw optionInvalid(unknown, "there is no such option; there are level, format, write");
  if (level !== "silent" && !LEVELS.includes(level)) throw optionInvalid("level", `it is none of ${[...LEVELS, "silent"].join(", ")}`);
  if (format !== undefined && format !== "json" && format !== "lines") throw optionInvalid("format", "it is neither json nor lines");
  if (write !== undefined && typeof write !== "function") throw optionInvalid("write", "it is not a function");
  return { level, format: format ?? (write === undefined && process.stdout.isTTY ? "lines" : "json"), write };
}

function optionInvalid(option: string, reason: string): PawlError {
  return pawlError("option_invalid", { option: `log.${option}`, reason });
}
