import { type EventName, type Events, type Pawl, type PawlError, pawlError } from "pawl";
import picocolors from "picocolors";
import pino from "pino";
import type { RequestFacts } from "../http/request-facts.js";
import { isQuiet, LEVELS, type Level, type Said, WORDS } from "../words/events.js";
import { HeldLines } from "./held-lines.js";
import { IN_REQUEST_TEXT, levelOf, REQUEST_EVENT, requestLine } from "./request-line.js";
import { safe } from "./safe-text.js";
import { SeldomLines } from "./seldom-lines.js";

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
  /** Writes down one request, within a moment: see `World.onRequest`. */
  request(facts: RequestFacts): void;
  /** Writes at once what is held back to be written together. */
  flush(): void;
  /** Writes down what happens in a pawl, until the answer is called. */
  follow(pawl: Pick<Pawl, "on">): () => void;
}

export function logTo(options: LogOptions = {}): Log {
  const { level, format, write } = checked(options);
  const shown = (json: string) => (format === "json" ? json : forPeople(json, write === undefined));
  const lines = new HeldLines(write ?? ((text) => void process.stdout.write(text)));
  const logger = pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (label) => ({ level: label }) }, redact: REDACTED },
    { write: (line: string) => lines.write(shown(line)) },
  );
  const seldom = new SeldomLines(() => performance.now());
  const say = (event: string | undefined, line: Omit<Said, "subject">) => {
    if (!logger.isLevelEnabled(line.level)) return;
    const kept = line.class === undefined ? 0 : seldom.admit(line.class);
    if (kept === undefined) return;
    const about = { ...(event === undefined ? {} : { event }), ...(cleaned(line.fields ?? {}) as object), ...(kept === 0 ? {} : { left_out: kept }) };
    logger[line.level](about, safe(line.text));
  };
  const own = (of: Level) => (text: string, fields?: Readonly<Record<string, unknown>>) =>
    say(undefined, { level: of, text, ...(fields === undefined ? {} : { fields }) });
  return {
    debug: own("debug"),
    info: own("info"),
    warn: own("warn"),
    error: own("error"),
    request: (facts) => {
      if (logger.isLevelEnabled(levelOf(facts))) lines.hold(shown(requestLine(facts)));
    },
    flush: () => lines.flush(),
    follow: (pawl) => follow(pawl, level, say),
  };
}

/** Listens only for what would be written: events that nobody hears are not even made. */
function follow(pawl: Pick<Pawl, "on">, level: Level | "silent", say: (event: string, line: Omit<Said, "subject">) => void): () => void {
  if (level === "silent") return () => {};
  const hear = <E extends EventName>(name: E): (() => void)[] => {
    const words = WORDS[name];
    if (words === null || LEVELS.indexOf(words.most) < LEVELS.indexOf(level)) return [];
    return [
      pawl.on(name, (event) => {
        if (name === "attempt.settled" && isQuiet(event as Events["attempt.settled"], level)) return;
        const said = words.of(event);
        if (said !== undefined) say(name, { ...said, text: `${said.subject}: ${said.text}` });
      }),
    ];
  };
  const stops = (Object.keys(WORDS) as EventName[]).flatMap((name) => hear(name));
  return () => {
    for (const stop of stops) stop();
  };
}

/** Whatever hands them in: these are never written. */
const SECRET_FIELDS = ["authorization", "cookie", "password", "secret", "token", "key", "apiKey", "input", "output"];
const REDACTED = { paths: SECRET_FIELDS.flatMap((name) => [name, `*.${name}`]), censor: "[hidden]" };

/** Names and messages in fields come from others as much as those in the text. */
function cleaned(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return safe(value);
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth > 4) return "…";
  if (Array.isArray(value)) return value.map((one) => cleaned(one, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [safe(name), cleaned(one, depth + 1)]));
}

const COLOURS: Readonly<Record<Level, (text: string) => string>> = {
  debug: picocolors.dim,
  info: picocolors.cyan,
  warn: picocolors.yellow,
  error: picocolors.red,
};

/** 12:00:00 WARN  text  name=value … */
function forPeople(json: string, coloured: boolean): string {
  const { level, time, msg, event, ...fields } = JSON.parse(json) as { level: Level; time: string; msg: string; event?: string };
  const word = level.toUpperCase().padEnd(5);
  const said = event === REQUEST_EVENT ? IN_REQUEST_TEXT : [];
  const told = Object.entries(fields).filter(([name]) => !said.includes(name));
  const more = told.map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  return `${time.slice(11, 19)} ${coloured ? COLOURS[level](word) : word} ${[msg, ...more].join("  ")}\n`;
}

function checked({ level = "info", format, write, ...rest }: LogOptions) {
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw refused(unknown, "there is no such option; there are level, format, write");
  if (level !== "silent" && !LEVELS.includes(level)) throw refused("level", `it is none of ${[...LEVELS, "silent"].join(", ")}`);
  if (format !== undefined && format !== "json" && format !== "lines") throw refused("format", "it is neither json nor lines");
  if (write !== undefined && typeof write !== "function") throw refused("write", "it is not a function");
  return { level, format: format ?? (write === undefined && process.stdout.isTTY ? "lines" : "json"), write };
}

function refused(option: string, reason: string): PawlError {
  return pawlError("option_invalid", { option: `log.${option}`, reason });
}
